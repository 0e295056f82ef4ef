/* overflow.c: products and sums that no heap can hold. */
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

/* Whether errno is judged: several managers return null correctly without setting errno. */
static int judge_errno;

static void refused(void *block, const char *what, size_t first, size_t second) {
    int error = errno;
    CHECK(!block || judge_errno, "%s (%zu, %zu) gave a block", what, first, second);
    if (block && judge_errno)
        not_applicable("it does not refuse, which another case reports");
    CHECK(!judge_errno || error == ENOMEM, "%s (%zu, %zu) gave null with errno %d instead of ENOMEM", what, first,
          second, error);
}

static const size_t HALF = SIZE_MAX / 2 + 1;

static void calloc_overflow_case(void) {
    /* Products of 0, a little and much, modulo 2^64. */
    const size_t pairs[][2] = {{HALF, 2},          {HALF + 8, 2},         {2, HALF},
                               {SIZE_MAX / 16 + 2, 16}, {SIZE_MAX, SIZE_MAX}, {(size_t)1 << 32, (size_t)1 << 32},
                               {((size_t)1 << 32) + 1, (size_t)1 << 32}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        errno = 0;
        refused(calloc(hidden(pairs[i][0]), hidden(pairs[i][1])), "calloc", pairs[i][0], pairs[i][1]);
    }
}

CASE(PLAIN, calloc_overflow, "calloc whose product overflows gives null") { calloc_overflow_case(); }

static void reallocarray_overflow_case(void) {
    void *block = malloc(500);
    CHECK(block, "malloc(500) gave null");
    fill(block, 500, 5);
    const size_t pairs[][2] = {{HALF, 2}, {HALF + 8, 2}, {SIZE_MAX / 16 + 2, 16}, {SIZE_MAX, SIZE_MAX}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        errno = 0;
        void *moved = reallocarray(hidden_pointer(block), hidden(pairs[i][0]), hidden(pairs[i][1]));
        refused(moved, "reallocarray", pairs[i][0], pairs[i][1]);
        check_filled(block, 500, 5, "a block after a refused reallocarray");
    }
    free(block);
}

CASE(PLAIN, reallocarray_overflow, "reallocarray whose product overflows gives null, the block stays") {
    reallocarray_overflow_case();
}

/* From PTRDIFF_MAX + 1 on; the last ones overflow when a header or an alignment is added. */
static const size_t HUGE[] = {(size_t)PTRDIFF_MAX + 1,    (size_t)PTRDIFF_MAX + 4096, SIZE_MAX - ((size_t)2 << 20),
                              SIZE_MAX - 65536,           SIZE_MAX - 4096,            SIZE_MAX - 4095,
                              SIZE_MAX - 64,              SIZE_MAX - 32,              SIZE_MAX - 16,
                              SIZE_MAX - 15,              SIZE_MAX - 8,               SIZE_MAX - 1,
                              SIZE_MAX};
enum { HUGES = sizeof HUGE / sizeof *HUGE };

static void huge_malloc_case(void) {
    for (size_t i = 0; i < HUGES; i++) {
        errno = 0;
        refused(malloc(hidden(HUGE[i])), "malloc", HUGE[i], 1);
        errno = 0;
        refused(calloc(hidden(HUGE[i]), 1), "calloc", HUGE[i], 1);
        errno = 0;
        refused(realloc(hidden_pointer(NULL), hidden(HUGE[i])), "realloc of null", HUGE[i], 1);
    }
    void *block = malloc(hidden(100));
    CHECK(block, "malloc(100) gave null after refusals");
    free(block);
}

CASE(PLAIN, huge_malloc, "malloc and calloc over PTRDIFF_MAX give null") { huge_malloc_case(); }

static void huge_realloc_case(void) {
    for (size_t size = 10; size < 3000000; size *= 50) {
        void *block = malloc(size);
        CHECK(block, "malloc(%zu) gave null", size);
        fill(block, size, size);
        for (size_t i = 0; i < HUGES; i++) {
            errno = 0;
            refused(realloc(block, hidden(HUGE[i])), "realloc", size, HUGE[i]);
            check_filled(block, size, size, "a block after a refused realloc");
        }
        free(block);
    }
}

CASE(PLAIN, huge_realloc, "realloc over PTRDIFF_MAX gives null, the block stays") { huge_realloc_case(); }

static void huge_aligned_case(void) {
    for (size_t alignment = 16; alignment <= (size_t)1 << 20; alignment *= 16)
        for (size_t i = 0; i < HUGES; i++) {
            size_t size = hidden(HUGE[i]);
            errno = 0;
            refused(memalign(alignment, size), "memalign", alignment, size);
            errno = 0;
            refused(aligned_alloc(alignment, size & ~(alignment - 1)), "aligned_alloc", alignment, size);
            void *mark = &alignment, *result = mark;
            int status = posix_memalign(&result, alignment, size);
            CHECK(status == ENOMEM, "posix_memalign(%zu, %zu) answered %d instead of ENOMEM", alignment, size, status);
            CHECK(result == mark, "posix_memalign(%zu, %zu) failed and wrote its result", alignment, size);
        }
    for (size_t i = 0; i < HUGES; i++) {
        errno = 0;
        refused(valloc(hidden(HUGE[i])), "valloc", HUGE[i], 1);
        errno = 0;
        refused(pvalloc(hidden(HUGE[i])), "pvalloc", HUGE[i], 1);
    }
}

CASE(PLAIN, huge_aligned, "aligned blocks over PTRDIFF_MAX are refused") { huge_aligned_case(); }

CASE(PLAIN, errno_overflow, "calloc and reallocarray that refuse an overflow set errno to ENOMEM") {
    judge_errno = 1;
    calloc_overflow_case();
    reallocarray_overflow_case();
}

CASE(PLAIN, errno_huge, "malloc, calloc and realloc that refuse set errno to ENOMEM") {
    judge_errno = 1;
    huge_malloc_case();
    huge_realloc_case();
}

CASE(PLAIN, errno_huge_aligned, "memalign, aligned_alloc, valloc and pvalloc that refuse set errno to ENOMEM") {
    judge_errno = 1;
    huge_aligned_case();
}
