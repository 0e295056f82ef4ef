/* A manager that may be interrupted by a call of itself: every block is a new one. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static char *heap;
static size_t top;

static void *take(size_t align, size_t size) {
    if (!heap) {
        void *made = mmap(0, (size_t)1 << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        char *none = 0;
        __atomic_compare_exchange_n(&heap, &none, made, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    size_t bytes = (size + 16 + align + 15) & ~(size_t)15;
    if (bytes < size || bytes > (size_t)1 << 39) {
        errno = ENOMEM;
        return 0;
    }
    size_t start = (__atomic_fetch_add(&top, bytes, __ATOMIC_RELAXED) + 16 + align - 1) & ~(align - 1);
    ((size_t *)(heap + start))[-1] = size;
    return heap + start;
}
void *malloc(size_t size) { return take(16, size); }
void free(void *block) {}
void *calloc(size_t count, size_t size) { return take(16, count * size); }
void *realloc(void *block, size_t size) {
    char *moved = take(16, size);
    if (block && moved) {
        size_t old = ((size_t *)block)[-1];
        memcpy(moved, block, old < size ? old : size);
    }
    return moved;
}
void *memalign(size_t align, size_t size) { return take(align < 16 ? 16 : align, size); }
size_t malloc_usable_size(void *block) { return block ? ((size_t *)block)[-1] : 0; }
