/* random.c: many live blocks of all sizes, each filled with a pattern of its own: none overlaps another. */
#include "check.h"

#include <malloc.h>
#include <stdlib.h>

enum { HELD = 1500 };
static struct {
    unsigned char *block;
    size_t size;
    uint64_t seed;
} held[HELD];

static size_t some_size(struct rng *rng) {
    size_t kind = rng_below(rng, 100);
    return kind < 80 ? rng_below(rng, 256) : kind < 97 ? rng_below(rng, 4096) : rng_below(rng, 65536);
}

static void sequence(uint64_t seed, size_t steps) {
    struct rng rng = {seed};
    for (size_t i = 0; i < steps; i++) {
        size_t at = rng_below(&rng, HELD), what = rng_below(&rng, 16);
        if (held[at].block) {
            check_filled(held[at].block, held[at].size, held[at].seed, "a block among many");
            if (what == 0 && held[at].size <= 4096) {
                size_t size = rng_below(&rng, 4096) + 1, kept = size < held[at].size ? size : held[at].size;
                held[at].block = realloc(held[at].block, size);
                CHECK(held[at].block, "realloc to %zu bytes gave null", size);
                check_filled(held[at].block, kept, held[at].seed, "a block after realloc, among many");
                held[at].size = size;
            } else {
                free(held[at].block);
                held[at].block = NULL;
                continue;
            }
        } else {
            size_t size = held[at].size = some_size(&rng) + 1;
            if (what == 1)
                held[at].block = memalign((size_t)16 << rng_below(&rng, 9), size);
            else if (what < 4)
                held[at].block = calloc(1, size);
            else
                held[at].block = malloc(size);
            CHECK(held[at].block, "a block of %zu bytes was refused", size);
        }
        held[at].seed = i * 2 + seed;
        fill(held[at].block, held[at].size, held[at].seed);
    }
    for (size_t at = 0; at < HELD; at++)
        if (held[at].block) {
            check_filled(held[at].block, held[at].size, held[at].seed, "a block at the end");
            free(held[at].block);
            held[at].block = NULL;
        }
    check_heap("after a sequence");
}

CASE(PLAIN, random_blocks, "random sequences with fixed seeds: no block overlaps or damages another") {
    for (uint64_t seed = 1; seed <= effort(6, 2); seed++)
        sequence(seed * 7919, effort(60000, 30000));
}
