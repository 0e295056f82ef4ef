/* errno.c: what succeeds leaves errno alone. glibc promises it for free since 2.33, POSIX since 2024. */
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#define KEPT(call, ...)                                                  \
    do {                                                                 \
        errno = 12345;                                                   \
        call;                                                            \
        int error = errno;                                               \
        CHECK(error == 12345, __VA_ARGS__);                              \
    } while (0)

CASE(PLAIN, errno_allocating, "a call that gives a block leaves errno alone") {
    size_t sizes[BORDERS], count = border_sizes(sizes, 1 << 20);
    for (size_t i = 0; i < count + 2; i++) {
        size_t size = i < count ? sizes[i] : (size_t)8 << (20 + i - count);
        void *blocks[4] = {NULL};
        KEPT(blocks[0] = malloc(size), "malloc(%zu) set errno to %d", size, error);
        KEPT(blocks[1] = calloc(1, size), "calloc(1, %zu) set errno to %d", size, error);
        KEPT(blocks[0] = realloc(blocks[0], size + size / 2), "realloc of %zu bytes set errno to %d", size, error);
        KEPT(blocks[2] = memalign(64, size), "memalign(64, %zu) set errno to %d", size, error);
        KEPT(posix_memalign(&blocks[3], 4096, size), "posix_memalign(4096, %zu) set errno to %d", size, error);
        KEPT(malloc_usable_size(blocks[0]), "malloc_usable_size set errno to %d", error);
        for (int j = 0; j < 4; j++) {
            CHECK(blocks[j], "a block of %zu bytes was refused", size);
            free(blocks[j]);
        }
    }
}

CASE(PLAIN, errno_free, "free leaves errno alone, also where it releases memory to the system") {
    static void *blocks[1500];
    for (size_t size = 1; size < (size_t)64 << 20; size *= 8) {
        void *block = malloc(size);
        CHECK(block, "malloc(%zu) gave null", size);
        fill(block, size, 1);
        KEPT(free(block), "free of %zu bytes set errno to %d", size, error);
    }
    for (size_t i = 0; i < 1500; i++) {
        blocks[i] = malloc(10000);
        CHECK(blocks[i], "malloc(10000) gave null");
        fill(blocks[i], 10000, 1);
    }
    for (size_t i = 0; i < 1500; i++)
        KEPT(free(blocks[i]), "free of block %zu of 1500 set errno to %d", i, error);
    KEPT(free(hidden_pointer(NULL)), "free(NULL) set errno to %d", error);
}

CASE(PLAIN, errno_posix_memalign, "posix_memalign reports by its result and leaves errno and the pointer alone") {
    void *mark = &mark, *result = mark;
    int status = 0;
    KEPT(status = posix_memalign(&result, 64, hidden((size_t)PTRDIFF_MAX + 1)),
         "posix_memalign without memory set errno to %d", error);
    CHECK(status == ENOMEM && result == mark, "posix_memalign without memory answered %d and %s its result", status,
          result == mark ? "left" : "wrote");
}
