/* `best-fit`: a staircase of holes, each a unit too small for the next request.
 *
 * Best fit takes the smallest free block that suffices, so a request larger than every hole comes out of the large
 * rest at the end of the heap, and a request for exactly one unit goes to a hole of one unit if there is one. A round
 * with holes of at most h - 1 units so far:
 *   1. request a row of blocks of h + 1 units: no hole will do, they lie side by side in fresh memory (or out of
 *      one large hole, made by filling M with blocks of n and freeing them: a manager that grows by pages would
 *      else leave a piece of a page below each block. Which is better is tried in two children);
 *   2. free one, request h (its place is the best fit: the older holes are smaller), then for 1: the best fit is
 *      the one unit that is left there. That pin separates the new block from its neighbour;
 *   3. when the row is done, free all blocks of h: holes of h, kept apart by pins of one unit.
 * The next round has h + 1. No hole is ever used again. A round with P pins live makes (M - P)/(h + 1) more, so
 * M - P falls as 1/h; begun at h = n/e, the heap has M n / e units in the end, after a number of calls proportional
 * to M. Robson's own attack of 1977 comes
 * nearer to M n, with a number of calls proportional to M squared. */
#include "adversary.h"

#define TRIES 4

static struct block *strays;
static size_t stray_count;

/* A block in the place from `from` on. A block that lands elsewhere has filled a hole that was a better fit, or as good
 * a one. It stays there until the round is done; a pin, which would leave its hole to the next, stays for ever. */
static bool get_within(struct block *block, size_t units, const char *from, size_t place) {
    for (int i = 0; i < TRIES && spare() >= units && get(block, units); i++) {
        /* The program's part of a block begins somewhat after the block. */
        if (block->at >= from - game.unit && block->at < from + place * game.unit) return true;
        if (units > 1) strays[stray_count++] = *block;
        block->at = NULL;
    }
    return false;
}

/* One round; how much of it came out as it should, 0 to 1: the part of the row that lay in fresh memory, and that got
 * its pins. */
static double climb(size_t h, bool rest, struct block *row, struct block *holes) {
    size_t length = 0, made = 0, pinned = 0, before = extent_bytes();
    if (rest) {
        while (spare() >= game.largest && get(&row[length], game.largest)) length++;
        while (length) give(&row[--length]);
    }
    /* Leaves units for the strays. */
    while (spare() >= 2 * (h + 1) && get(&row[length], h + 1)) length++;
    if (length < 2) {
        if (length) give(&row[0]);
        return 0;
    }
    sample();
    /* The last one lies next to the remainder of the free memory, with which it would be coalesced. */
    for (size_t i = 0; i + 1 < length && !game.stopped; i++) {
        struct block pin;
        const char *from = row[i].at;
        give(&row[i]);
        if (!get_within(&holes[made], h, from, h + 1)) continue;
        made++;
        pinned += get_within(&pin, 1, from, h + 1);
    }
    sample();
    for (size_t i = 0; i < made; i++) give(&holes[i]);
    give(&row[length - 1]);
    while (stray_count) give(&strays[--stray_count]);
    double fresh = (double)(extent_bytes() - before) / (double)(length * (h + 1) * game.unit);
    double pins = (double)pinned / (double)length;
    return fresh < pins ? fresh : pins;
}

static void play(bool rest) {
    struct block *row = own(game.live, sizeof *row);
    struct block *holes = own(game.live, sizeof *holes);
    strays = own(game.live, sizeof *strays);
    size_t h = (size_t)((double)game.largest / 2.718281828);
    for (h = h < 2 ? 2 : h; h + 1 <= game.largest && !game.stopped; h++) {
        /* Not a best fit: do not take forever over it. */
        if (climb(h, rest, row, holes) < 0.3 && h + 16 < game.largest) h += 15;
    }
}

static void trial(void *answer, size_t rest) {
    play(rest != 0);
    *(size_t *)answer = extent_bytes();
}

void play_best_fit(void) {
    size_t *plain = shared(sizeof *plain), *rest = shared(sizeof *rest);
    in_child(trial, plain, 0);
    in_child(trial, rest, 1);
    play(*rest > *plain);
}
