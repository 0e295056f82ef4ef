/* `robson`: the adversary against every manager that does not move blocks.
 *
 * J. M. Robson, "An estimate of the store size necessary for dynamic storage allocation" (J. ACM 18, 1971) and "Bounds
 * for some functions concerning dynamic storage allocation" (J. ACM 21, 1974).
 *
 * Step 0 requests M blocks of one unit. Step i, for i = 1 .. log2 n, has a residue f_i modulo 2^i: f_{i-1}, or f_{i-1}
 * + 2^{i-1}. Every block that covers no address congruent to f_i is freed, and the rest of M is requested in blocks of
 * 2^i units.
 *
 * Why it works: each live block covers an address congruent to f_i, a new one because of its size, an old one because
 * it was kept, and no two cover the same. So the heap has 2^i units for each live block, but for 2^i - 1 at its ends:
 * M and the waste, which is the sum of 2^i less the block's size. A block covers one such address only, so just one of
 * the next two residues keeps it: the wastes that the two would have add up to the sum of 2^(i+1) less the size over
 * all blocks, which is twice the present waste and M. The adversary takes the greater, so each step adds M/2 at least,
 * and after log2 n steps the heap has M (log2(n)/2 + 1) - n + 1 units, whatever the manager does. (Exactly so where M
 * is a multiple of n; else a remainder of M may lie idle in a step.) */
#include "adversary.h"

static bool covers(const struct block *block, int64_t residue, int64_t modulus) {
    int64_t distance = (residue - position(block)) % modulus;
    if (distance < 0) distance += modulus;
    return distance < (int64_t)(block->taken / game.unit);
}

/* Units kept from others by the blocks that would stay. */
static int64_t waste(const struct block *blocks, size_t count, int64_t residue, int64_t modulus) {
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (covers(&blocks[i], residue, modulus)) sum += modulus - (int64_t)(blocks[i].taken / game.unit);
    }
    return sum;
}

static size_t fill(struct block *blocks, size_t count, size_t units, bool over_half) {
    over_half = over_half && units > 1;
    size_t counted = over_half ? units / 2 : units;
    size_t bytes = counted * game.unit - game.overhead + over_half;
    while (spare() >= counted && get_bytes(&blocks[count], bytes, counted, units * game.unit)) count++;
    sample();
    return count;
}

void robson_steps(bool over_half) {
    struct block *blocks = own(game.live, sizeof *blocks);
    size_t count = fill(blocks, 0, 1, over_half);
    int64_t residue = 0;
    for (int64_t size = 2; size <= (int64_t)game.largest && !game.stopped; size *= 2) {
        if (waste(blocks, count, residue + size / 2, size) > waste(blocks, count, residue, size)) residue += size / 2;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
            if (covers(&blocks[i], residue, size)) {
                blocks[kept++] = blocks[i];
            } else {
                give(&blocks[i]);
            }
        }
        count = fill(blocks, kept, (size_t)size, over_half);
    }
}

void play_robson(void) { robson_steps(false); }
