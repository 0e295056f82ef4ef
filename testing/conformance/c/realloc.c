/* realloc.c: contents survive every move. */
#include "check.h"

#include <malloc.h>
#include <stdlib.h>

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void *resize(void *block, size_t from, size_t to, int as_array) {
    void *moved = as_array ? reallocarray(block, to, 1) : realloc(block, to);
    CHECK(moved, "realloc from %zu to %zu bytes gave null", from, to);
    CHECK(malloc_usable_size(moved) >= to, "realloc from %zu to %zu bytes: %zu usable", from, to,
          malloc_usable_size(moved));
    CHECK((uintptr_t)moved % 16 == 0 || to < 16, "realloc from %zu to %zu bytes gave %p", from, to, moved);
    return moved;
}

/* The pattern of small blocks covers every byte, so a prefix of one can be checked. */
static void check_prefix(void *block, size_t size, uint64_t seed, const char *what) {
    check_filled(block, smaller(size, 4096), seed, what);
}

CASE(PLAIN, realloc_contents, "growing and shrinking across the borders of size classes keeps the contents") {
    size_t sizes[BORDERS], count = border_sizes(sizes, 1 << 20);
    for (size_t i = 0; i < count; i++)
        for (size_t next = i + 1; next < i + 5; next++) {
            size_t small = sizes[i], large = sizes[next % count];
            unsigned char *block = malloc(small);
            CHECK(block, "malloc(%zu) gave null", small);
            fill(block, smaller(small, 4096), i);
            block = resize(block, small, large, next % 2);
            check_prefix(block, smaller(small, large), i, "a block after growing");
            fill(block, smaller(large, 4096), next);
            block = resize(block, large, small, next % 2);
            check_prefix(block, smaller(small, large), next, "a block after shrinking");
            free(block);
        }
}

CASE(PLAIN, realloc_walk, "random resizes among live neighbours damage neither the block nor the neighbours") {
    enum { HELD = 64 };
    static struct {
        unsigned char *block;
        size_t size;
        uint64_t seed;
    } held[HELD];
    struct rng rng = {23};
    size_t steps = effort(20000, 6000);
    for (size_t i = 0; i < steps; i++) {
        size_t at = rng_below(&rng, HELD);
        size_t size = 1 + rng_below(&rng, (size_t)8 << rng_below(&rng, 12));
        if (held[at].block)
            check_filled(held[at].block, held[at].size, held[at].seed, "a block among resized ones");
        size_t kept = smaller(smaller(held[at].size, size), 4096);
        if (held[at].size > 4096)
            kept = 0; /* Sampled: a prefix of it is another pattern. */
        held[at].block = resize(held[at].block, held[at].size, size, 0);
        check_filled(held[at].block, kept, held[at].seed, "a block after realloc");
        held[at].size = size;
        held[at].seed = i;
        fill(held[at].block, size, i);
    }
    for (size_t at = 0; at < HELD; at++) {
        check_filled(held[at].block, held[at].size, held[at].seed, "a block at the end");
        free(held[at].block);
    }
}

CASE(PLAIN, realloc_aligned, "blocks of memalign may be resized and freed") {
    for (size_t alignment = 16; alignment <= 65536; alignment *= 4)
        for (size_t size = 1; size < 300000; size = size * 5 + 3) {
            void *before = malloc(40), *block = NULL;
            CHECK(before && posix_memalign(&block, alignment, size) == 0, "an aligned block was refused");
            fill(before, 40, 1);
            fill(block, smaller(size, 4096), 2);
            block = resize(block, size, size * 3 + 1, 0);
            check_filled(block, smaller(size, 4096), 2, "an aligned block after growing");
            block = resize(block, size * 3 + 1, size / 2 + 1, 0);
            check_filled(block, smaller(size / 2 + 1, smaller(size, 4096)), 2, "an aligned block after shrinking");
            check_filled(before, 40, 1, "the block before an aligned one");
            free(block);
            free(before);
        }
}

CASE(PLAIN, realloc_large, "blocks of megabytes may be resized") {
    size_t sizes[] = {1 << 20, 3 << 20, 40 << 20, 41 << 20, 2 << 20, 100000, 50};
    unsigned char *block = malloc(10);
    CHECK(block, "malloc(10) gave null");
    fill(block, 10, 9);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = realloc(block, sizes[i]);
        CHECK(block, "realloc to %zu bytes gave null", sizes[i]);
        check_filled(block, 10, 9, "the beginning of a large block");
        if (i > 0 && sizes[i] > sizes[i - 1])
            CHECK(block[sizes[i - 1] - 1] == 0x3C, "the end of %zu bytes was lost in growing to %zu", sizes[i - 1],
                  sizes[i]);
        block[sizes[i] - 1] = 0x3C;
    }
    free(block);
}
