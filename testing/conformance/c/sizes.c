/* sizes.c: sizes of nothing, and how much of a block may be written. */
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

CASE(PLAIN, zero_malloc, "malloc(0) and calloc of nothing: null, or blocks all different that free takes") {
    enum { COUNT = 600 };
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        switch (i % 3) {
        case 0: blocks[i] = malloc(hidden(0)); break;
        case 1: blocks[i] = calloc(hidden(0), 8); break;
        default: blocks[i] = calloc(8, hidden(0));
        }
        for (size_t j = 0; j < i; j++)
            CHECK(!blocks[i] || blocks[i] != blocks[j], "block %zu of no bytes is the same as block %zu", i, j);
    }
    void *real = malloc(hidden(24));
    CHECK(real, "malloc(24) gave null after %d blocks of no bytes", COUNT);
    fill(real, 24, 7);
    for (size_t i = 0; i < COUNT; i++)
        free(blocks[i]);
    check_filled(real, 24, 7, "a block among freed ones of no bytes");
    free(real);
}

CASE(PLAIN, zero_realloc, "realloc(p, 0): null, or a block that free and realloc take") {
    for (size_t size = 1; size < 300000; size = size * 3 + 1) {
        void *block = malloc(size);
        CHECK(block, "malloc(%zu) gave null", size);
        fill(block, size, size);
        void *rest = realloc(block, hidden(0));
        if (size == 1)
            note("realloc(p, 0) gives %s", rest ? "a block" : "null");
        void *more = realloc(rest, 100);
        CHECK(more, "realloc to 100 bytes after realloc(p, 0) gave null");
        fill(more, 100, size);
        check_filled(more, 100, size, "a block after realloc(p, 0)");
        free(more);
    }
    void *fresh = realloc(NULL, hidden(0));
    free(fresh);
}

CASE(PLAIN, zero_realloc_leak, "realloc(p, 0) frees the block's memory") {
    enum { SIZE = 4000 };
    size_t rounds = effort(60000, 30000);
    size_t before = resident_bytes();
    for (size_t i = 0; i < rounds; i++) {
        unsigned char *block = malloc(SIZE);
        CHECK(block, "malloc(%d) gave null", SIZE);
        block[0] = block[SIZE - 1] = 1;
        free(realloc(block, hidden(0)));
    }
    size_t grown = resident_bytes() - before;
    CHECK((ptrdiff_t)grown < (ptrdiff_t)(32 << 20), "%zu rounds of malloc(%d), realloc(p, 0) and free leave %zu KiB",
          rounds, SIZE, grown >> 10);
}

CASE(PLAIN, zero_aligned, "aligned blocks of no bytes: null, or aligned blocks that free takes") {
    for (size_t alignment = sizeof(void *); alignment <= 4096; alignment *= 2) {
        void *blocks[3] = {NULL};
        int status = posix_memalign(&blocks[0], alignment, hidden(0));
        CHECK(status == 0, "posix_memalign(%zu, 0) answered %d", alignment, status);
        blocks[1] = memalign(alignment, hidden(0));
        blocks[2] = aligned_alloc(alignment, hidden(0));
        for (int i = 0; i < 3; i++) {
            CHECK((uintptr_t)blocks[i] % alignment == 0, "a block of no bytes at %p is not aligned to %zu", blocks[i],
                  alignment);
            CHECK(!blocks[i] || (blocks[i] != blocks[(i + 1) % 3] && blocks[i] != blocks[(i + 2) % 3]),
                  "two live blocks of no bytes are the same");
        }
        for (int i = 0; i < 3; i++)
            free(blocks[i]);
    }
    free(valloc(hidden(0)));
    free(pvalloc(hidden(0)));
}

CASE(PLAIN, null_pointers, "free(NULL) does nothing, malloc_usable_size(NULL) is 0, realloc(NULL, n) is malloc(n)") {
    free(hidden_pointer(NULL));
    CHECK(malloc_usable_size(hidden_pointer(NULL)) == 0, "malloc_usable_size(NULL) is not 0");
    unsigned char *block = realloc(hidden_pointer(NULL), 1000);
    CHECK(block, "realloc(NULL, 1000) gave null");
    fill(block, 1000, 1);
    unsigned char *array = reallocarray(hidden_pointer(NULL), 10, 100);
    CHECK(array, "reallocarray(NULL, 10, 100) gave null");
    fill(array, 1000, 2);
    check_filled(block, 1000, 1, "a block from realloc(NULL, 1000)");
    free(block);
    free(array);
}

/* Three blocks of a size, adjacent in many managers: all of the middle one is written. */
CASE(PLAIN, usable_size, "malloc_usable_size is at least the requested size, and all of it may be written") {
    size_t sizes[BORDERS], count = border_sizes(sizes, 1 << 20);
    for (size_t i = 0; i <= count; i++) {
        size_t size = i < count ? sizes[i] : 1;
        unsigned char *blocks[3];
        for (int j = 0; j < 3; j++) {
            blocks[j] = j == 1 ? calloc(1, size) : malloc(size);
            CHECK(blocks[j], "a block of %zu bytes was refused", size);
        }
        size_t usable = malloc_usable_size(blocks[1]);
        CHECK(usable >= size, "malloc_usable_size is %zu for a block of %zu bytes", usable, size);
        size_t outer[2] = {malloc_usable_size(blocks[0]), malloc_usable_size(blocks[2])};
        CHECK(outer[0] >= size && outer[1] >= size, "malloc_usable_size is %zu and %zu for two blocks of %zu bytes",
              outer[0], outer[1], size);
        fill(blocks[0], outer[0], 1);
        fill(blocks[2], outer[1], 3);
        fill(blocks[1], usable, 2);
        check_filled(blocks[0], outer[0], 1, "the block before one whose usable bytes were written");
        check_filled(blocks[2], outer[1], 3, "the block after one whose usable bytes were written");
        unsigned char *same = realloc(blocks[1], usable);
        CHECK(same, "realloc to the usable size gave null");
        check_filled(same, usable, 2, "a block after realloc to its usable size");
        free(blocks[0]);
        free(same);
        free(blocks[2]);
    }
}
