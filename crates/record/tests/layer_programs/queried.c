/* A manager that calls the malloc family itself, as gperftools' does by operator new, and cannot be queried meanwhile. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

void *malloc(size_t);
void free(void *);
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static __thread int inside;

static void enter(void) {
    if (inside++) return;
    free(malloc(33));
}
#define WITHIN(TYPE, CALL) enter(); TYPE result = CALL; inside--; return result
void *malloc(size_t size) { WITHIN(void *, __libc_malloc(size)); }
void *calloc(size_t count, size_t size) { WITHIN(void *, __libc_calloc(count, size)); }
void *realloc(void *block, size_t size) { WITHIN(void *, __libc_realloc(block, size)); }
void *memalign(size_t align, size_t size) { WITHIN(void *, __libc_memalign(align, size)); }
void free(void *block) { enter(); __libc_free(block); inside--; }
size_t malloc_usable_size(void *block) {
    if (inside) {
        static const char queried[] = "queried from within\n";
        write(2, queried, sizeof queried - 1);
        _exit(3);
    }
    WITHIN(size_t, block ? (((size_t *)block)[-1] & ~7ul) - 8 : 0);
}
