/* reuse.c: freed memory is reused. In cases of their own, since a manager whose free does nothing conforms
   otherwise. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static void bounded(size_t before, size_t limit, const char *what) {
    size_t now = resident_bytes();
    CHECK(now < before + limit, "%s: resident memory grew by %zu KiB", what, (now - before) >> 10);
}

CASE(PLAIN, reuse_small, "small blocks of one and of mixed sizes are reused") {
    enum { HELD = 200 };
    static unsigned char *blocks[HELD];
    struct rng rng = {5};
    size_t before = resident_bytes(), rounds = effort(1200000, 300000);
    for (size_t i = 0; i < rounds; i++) {
        size_t at = i < rounds / 2 ? i % HELD : rng_below(&rng, HELD);
        free(blocks[at]);
        size_t size = i < rounds / 2 ? 500 : 1 + rng_below(&rng, 1000);
        blocks[at] = malloc(size);
        CHECK(blocks[at], "malloc(%zu) gave null", size);
        memset(blocks[at], 1, size);
    }
    bounded(before, (size_t)32 << 20, "200 blocks of up to 1000 bytes, replaced again and again");
}

CASE(PLAIN, reuse_large, "blocks of 100 KB to 1 MB are reused or released") {
    enum { HELD = 8 };
    static unsigned char *blocks[HELD];
    struct rng rng = {6};
    size_t before = resident_bytes(), rounds = effort(1200, 800);
    for (size_t i = 0; i < rounds; i++) {
        size_t at = rng_below(&rng, HELD), size = 100000 + rng_below(&rng, 900000);
        free(blocks[at]);
        blocks[at] = malloc(size);
        CHECK(blocks[at], "malloc(%zu) gave null", size);
        for (size_t page = 0; page < size; page += 4096)
            blocks[at][page] = 1;
    }
    bounded(before, (size_t)160 << 20, "8 blocks of up to 1 MB, replaced again and again");
}
