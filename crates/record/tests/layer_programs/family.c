/* Every function of the malloc family, with every kind of argument, well and badly. */
#include "log.h"

/* C23's: under a layer they are there, whatever the C library has. */
extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

int main(void) {
    log_begin();
    void *p = 0, *q;
    mark(MARK_BEGIN);
    size_t sizes[] = {0, 1, 8, 24, 25, 100, 1000, 1023, 2047, 2048, 2049, 4096, 65535, 65536, 70000, 131072, 1 << 20, 40 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        /* Twice: the second usable size is predicted. */
        p = MALLOC(sizes[i]);
        q = MALLOC(sizes[i]);
        FREE(p);
        FREE(q);
    }
    FREE(NEW(1, 0, 300, calloc(3, 100)));
    FREE(NEW(1, 0, 0, calloc(0, 100)));
    FREE(NEW(1, 0, 200000, calloc(2, 100000)));
    for (size_t align = 16; align <= 65536; align *= 2) {
        FREE(NEW(2, align, 40, memalign(align, 40)));
        FREE(NEW(2, align, align * 2, aligned_alloc(align, align * 2)));
        CHECK(posix_memalign(&p, align, 100) == 0 && (uintptr_t)p % align == 0);
        FREE(made(2, align, 100, p));
    }
    /* An alignment that is no power of two is rounded up. */
    FREE(NEW(2, 64, 40, memalign(48, 40)));
    FREE(NEW(2, 4096, 100, valloc(100)));
    FREE(NEW(2, 4096, 100, pvalloc(100)));

    p = MALLOC(10);
    p = REALLOC(p, 20);
    p = REALLOC(p, 5000);
    p = REALLOC(p, 300000);
    p = REALLOC(p, 3000000);
    p = REALLOC(p, 30);
    q = REALLOC(p, (size_t)1 << 60);
    CHECK(!q && errno == ENOMEM);
    q = REALLOC(p, 0);
    CHECK(!q);
    /* Of nothing: a malloc. */
    p = NEW(0, 0, 77, realloc(0, 77));
    p = resized(p, 770, reallocarray(p, 77, 10));
    q = resized(p, SIZE_MAX, reallocarray(p, SIZE_MAX / 2, 3));
    CHECK(!q && errno == ENOMEM);
    FREE(p);

    /* What is refused. */
    CHECK(!MALLOC(PTRDIFF_MAX) && errno == ENOMEM);
    CHECK(!MALLOC(SIZE_MAX));
    CHECK(!NEW(1, 0, SIZE_MAX, calloc(SIZE_MAX / 2, 3)) && errno == ENOMEM);
    CHECK(!NEW(2, 16, PTRDIFF_MAX, memalign(16, PTRDIFF_MAX)));
    q = (void *)7;
    CHECK(posix_memalign(&q, 24, 100) == EINVAL && q == (void *)7);
    made(2, 24, 100, 0);
    CHECK(posix_memalign(&q, 64, PTRDIFF_MAX) == ENOMEM && q == (void *)7);
    made(2, 64, PTRDIFF_MAX, 0);

    if (free_sized) {
        p = MALLOC(100);
        given_back(0, p);
        free_sized(p, 100);
        p = NEW(2, 64, 128, aligned_alloc(64, 128));
        given_back(0, p);
        free_aligned_sized(p, 64, 128);
    }

    /* Nothing. */
    free(0);
    CHECK(malloc_usable_size(0) == 0);

    /* errno is kept, whatever the layer does. */
    for (int i = 0; i < 5000; i++) {
        errno = 12345;
        p = MALLOC(i);
        CHECK(errno == 12345);
        given_back(0, p);
        errno = 54321;
        free(p);
        CHECK(errno == 54321);
        if (i % 1000 == 0) usleep(3000);
    }
    mark(MARK_END);
    show();
    return 0;
}
