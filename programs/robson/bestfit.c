/* `best-fit`: a staircase of holes, each a unit too small for the next request.
 *
 * Best fit takes the smallest free block that suffices, so a request larger than every hole comes out of the large
 * rest at the end of the heap, and a request for exactly one unit goes to a hole of one unit if there is one. A round
 * with holes of at most h - 1 units so far:
 *   1. ask for a row of blocks of h + 1 units: no hole will do, they lie side by side in fresh memory;
 *   2. give one back, ask for h (its place is the best fit: the older holes are smaller), then for 1: the best fit is
 *      the one unit that is left there. That pin separates the new block from its neighbour;
 *   3. when the row is done, give back all blocks of h: holes of h, kept apart by pins of one unit.
 * The next round has h + 1. No hole is ever used again. A round with P pins live makes (M - P)/(h + 1) more, so
 * M - P falls as 1/h; begun at h = n/e, the heap has M n / e units in the end, after a number of calls proportional
 * to M. Robson's own attack of 1977 comes
 * nearer to M n, with a number of calls proportional to M squared. */
#include "adversary.h"

void play_best_fit(void) {
    struct block *row = own(game.live, sizeof *row);
    struct block *holes = own(game.live, sizeof *holes);
    size_t h = (size_t)((double)game.largest / 2.718281828);
    for (h = h < 2 ? 2 : h; h + 1 <= game.largest && !game.stopped; h++) {
        size_t length = 0, made = 0, missed = 0;
        while (spare() >= h + 1 && get(&row[length], h + 1)) length++;
        if (length == 0) break;
        sample();
        for (size_t i = 0; i < length && !game.stopped; i++) {
            struct block pin;
            const char *from = row[i].at, *to = from + (h + 1) * game.unit;
            give(&row[i]);
            if (!get(&holes[made], h)) break;
            made++;
            if (!get(&pin, 1)) break;
            /* A pin elsewhere is no pin. Were it given back at once it would come again, so it waits for the round's
             * end in the row, whose place is free. */
            if (pin.at < from - game.unit || pin.at >= to + game.unit) {
                row[i] = pin;
                missed++;
            }
        }
        sample();
        for (size_t i = 0; i < made; i++) give(&holes[i]);
        for (size_t i = 0; i < length; i++) give(&row[i]);
        if (missed * 2 > length && h + 16 < game.largest) h += 15; /* not a best fit: do not take forever over it */
    }
}
