/* calloc.c: recycled memory is zero again. */
#include "check.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void check_zero(const unsigned char *block, size_t size, const char *what) {
    for (size_t at = 0; at < size; at++)
        CHECK(block[at] == 0, "%s: byte %zu of %zu is %#x", what, at, size, block[at]);
}

static unsigned char *dirty(size_t size) {
    unsigned char *block = malloc(size);
    CHECK(block, "malloc(%zu) gave null", size);
    memset(block, 0xA5, malloc_usable_size(block));
    return block;
}

CASE(PLAIN, calloc_zeroes, "calloc zeroes memory that was used before, of every size") {
    enum { HELD = 8 };
    size_t sizes[BORDERS], count = border_sizes(sizes, 1 << 20);
    for (size_t i = 0; i < count + 3; i++) {
        size_t size = i < count ? sizes[i] : (size_t)1 << (21 + i - count);
        size_t held = size < 100000 ? HELD : 1;
        unsigned char *blocks[HELD];
        for (size_t j = 0; j < held; j++)
            blocks[j] = dirty(size);
        for (size_t j = 0; j < held; j++)
            free(blocks[j]);
        for (size_t j = 0; j < held; j++) {
            blocks[j] = j % 2 ? calloc(1, size) : calloc(size, 1);
            CHECK(blocks[j], "calloc of %zu bytes gave null", size);
            check_zero(blocks[j], size, "calloc after free of the same size");
            memset(blocks[j], 0x5A, size);
        }
        for (size_t j = 0; j < held; j++)
            free(blocks[j]);
    }
}

CASE(PLAIN, calloc_zeroes_parts, "calloc zeroes memory split from and coalesced of used blocks") {
    struct rng rng = {17};
    enum { HELD = 200 };
    static unsigned char *blocks[HELD];
    size_t rounds = effort(30000, 8000);
    for (size_t i = 0; i < rounds; i++) {
        size_t at = rng_below(&rng, HELD);
        free(blocks[at]);
        size_t size = 1 + rng_below(&rng, rng_below(&rng, 10) ? 600 : 20000);
        if (rng_below(&rng, 2)) {
            blocks[at] = dirty(size);
            if (rng_below(&rng, 4) == 0) {
                blocks[at] = realloc(blocks[at], size / 3 + 1);
                CHECK(blocks[at], "realloc to %zu bytes gave null", size / 3 + 1);
            }
        } else {
            blocks[at] = calloc(size, 1);
            CHECK(blocks[at], "calloc(%zu, 1) gave null", size);
            check_zero(blocks[at], size, "calloc in a used heap");
            memset(blocks[at], 0x77, size);
        }
    }
}
