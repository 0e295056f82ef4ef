/* mine.c: blocks of powers of two, a free list for each, one lock. */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Before each object: where its block begins, and its size as a power of two. */
struct header { char *block; size_t order; };
struct free_block { struct free_block *next; };

static struct free_block *lists[64];
static char *fresh, *end;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static struct header *header(void *object) { return (struct header *)object - 1; }

/* A block from the list, or from memory that was never used. */
static char *take(size_t order) {
    size_t size = (size_t)1 << order;
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) ;
    char *block = (char *)lists[order];
    if (block) {
        lists[order] = lists[order]->next;
    } else {
        if ((size_t)(end - fresh) < size) {
            size_t step = size > 1 << 20 ? size : 1 << 20;
            fresh = mmap(0, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (fresh == MAP_FAILED)
                fresh = end = 0;
            else
                end = fresh + step;
        }
        if (fresh) {
            block = fresh;
            fresh += size;
        }
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
    return block;
}

void *memalign(size_t alignment, size_t size) {
    size_t before = sizeof(struct header), order = 5;
    if (alignment > 16)
        before += alignment;
    else
        alignment = 16;
    while (order < 46 && (size_t)1 << order < size + before)
        order++;
    char *block = size < (size_t)1 << 45 && before < (size_t)1 << 45 ? take(order) : 0;
    if (!block) {
        errno = ENOMEM;
        return 0;
    }
    uintptr_t first = (uintptr_t)block + sizeof(struct header);
    void *object = (void *)((first + alignment - 1) & -alignment);
    *header(object) = (struct header){block, order};
    return object;
}

size_t malloc_usable_size(void *object) {
    return object ? header(object)->block + ((size_t)1 << header(object)->order) - (char *)object : 0;
}

void *malloc(size_t size) { return memalign(16, size); }

void free(void *object) {
    if (!object)
        return;
    struct free_block *block = (struct free_block *)header(object)->block;
    size_t order = header(object)->order;
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) ;
    block->next = lists[order];
    lists[order] = block;
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

void *calloc(size_t count, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(count, size, &all))
        all = SIZE_MAX;
    void *object = malloc(all);
    return object ? memset(object, 0, all) : 0;
}

void *realloc(void *object, size_t size) {
    if (!object)
        return malloc(size);
    size_t usable = malloc_usable_size(object);
    if (size && size <= usable)
        return object;
    void *moved = size ? malloc(size) : 0;
    if (moved)
        memcpy(moved, object, usable);
    if (moved || !size)
        free(object);
    return moved;
}

void *reallocarray(void *object, size_t count, size_t size) {
    size_t all;
    return realloc(object, __builtin_mul_overflow(count, size, &all) ? SIZE_MAX : all);
}

int posix_memalign(void **object, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || alignment & (alignment - 1))
        return EINVAL;
    int kept = errno;
    void *found = memalign(alignment, size);
    errno = kept;
    if (found)
        *object = found;
    return found ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
void *valloc(size_t size) { return memalign(4096, size); }
void *pvalloc(size_t size) { return memalign(4096, size < SIZE_MAX - 4095 ? (size + 4095) & -4096ul : size); }
