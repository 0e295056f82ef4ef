/* `roving`: against first fit from a roving pointer over a list in which blocks lie as they were freed.
 *
 * The rover's virtue, that small blocks do not gather at the front of the list, is its undoing: it puts one into each
 * hole in turn. So a row of large blocks becomes a row of holes with a pin between any two:
 *   1. with all holes one unit too small for it, request a row of blocks of n units, side by side in fresh memory;
 *   2. free every second one, and request a pin of one unit as often: each lands at an end of a hole of its own,
 *      and the hole has n - 1 units left;
 *   3. request n - 1 as often: each fills one of those holes;
 *   4. free the other half of the row, and request as many pins: one for each hole again;
 *   5. free the blocks of n - 1. Now every n units have a pin, and no hole is large enough for the next row.
 * The pins of 2 and 4 and the fillers of 3 must find the new holes and not those of earlier rounds. For that a block of
 * n units, the marker, is freed before the new holes are. A request for n passes over all old holes to the marker
 * and leaves the rover after it, where the new holes are; freed at once, the marker is put before the rover, the last
 * place that a search reaches, and is found there the next time. A second block, never freed, keeps the marker from
 * being coalesced with the first row.
 *
 * A round turns the free part of M into pins, at n units of heap each, so that the heap has nearly (M - 4 n) n units in
 * the end. There is no worse: each of at most M live blocks would have to keep more than n - 1 free units from use.
 * Robson's general adversary gets M (log2(n)/2 + 1) of the same manager.
 *
 * A rover that stays where it carved, instead of going on after it, puts pin after pin into one hole. It needs no such
 * care: blocks of n units and pins requested in turns come adjacent out of one large free block, wherever the holes
 * are. The first row is tried both ways, and the game goes on with the way that pins more of it. */
#include "adversary.h"

static struct block *row, *pins, marker, spacer;
static size_t pin_count;

static void swap(struct block *a, struct block *b) {
    struct block held = *a;
    *a = *b;
    *b = held;
}

/* By address: heapsort, in place. */
static void sort(struct block *blocks, size_t count) {
    for (size_t end = count, start = count / 2; end > 1;) {
        if (start) {
            start--;
        } else {
            swap(&blocks[0], &blocks[--end]);
        }
        for (size_t at = start, child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && blocks[child].at < blocks[child + 1].at) child++;
            if (blocks[child].at <= blocks[at].at) break;
            swap(&blocks[at], &blocks[child]);
        }
    }
}

/* Leaves the rover after the marker, before the holes made later. */
static void rove(size_t n) {
    if (get(&marker, n)) give(&marker);
}

/* Frees every second block from `first` on and puts pins in their places; returns how many landed there. */
static size_t pin(size_t first, size_t length, size_t n, const char *const *places) {
    size_t good = 0, from = pin_count;
    give(&marker);
    for (size_t i = first; i < length; i += 2) give(&row[i]);
    rove(n);
    for (size_t i = first; i < length && get(&pins[pin_count], 1); i += 2) pin_count++;
    for (size_t p = from; p < pin_count; p++) {
        size_t low = 0, high = length;
        while (low + 1 < high) {
            size_t middle = (low + high) / 2;
            if (places[middle] <= pins[p].at) low = middle;
            else high = middle;
        }
        good += pins[p].at >= places[low] && pins[p].at < places[low] + n * game.unit && low % 2 == first;
    }
    return good;
}

/* One round of the rover that goes on; the share of the row that was pinned. */
static double spread(size_t n, const char **places, struct block *fillers) {
    size_t length = 0, filled = 0;
    if (!spacer.at && !(get(&marker, n) && get(&spacer, n))) return 0;
    if (!marker.at && !get(&marker, n)) return 0;
    while (spare() >= n && get(&row[length], n)) length++;
    if (length < 2) {
        for (size_t i = 0; i < length; i++) give(&row[i]);
        return 0;
    }
    sample();
    sort(row, length);
    for (size_t i = 0; i < length; i++) places[i] = row[i].at;
    size_t good = pin(0, length, n, places);
    rove(n);
    for (size_t i = 0; i < length && spare() >= n - 1 && get(&fillers[filled], n - 1); i += 2) filled++;
    good += pin(1, length, n, places);
    sample();
    for (size_t i = 0; i < filled; i++) give(&fillers[i]);
    return (double)good / (double)length;
}

/* One round of the rover that stays. */
static double alternate(size_t n) {
    size_t length = 0, good = 0;
    while (spare() >= n + 1 && get(&row[length], n)) {
        if (!get(&pins[pin_count], 1)) break;
        const char *block = row[length].at, *at = pins[pin_count].at;
        good += at >= block - n * game.unit && at < block + 2 * n * game.unit;
        length++;
        pin_count++;
    }
    sample();
    for (size_t i = 0; i < length; i++) give(&row[i]);
    return length ? (double)good / (double)length : 0;
}

void play_roving(void) {
    size_t n = game.largest;
    row = own(game.live, sizeof *row);
    pins = own(game.live, sizeof *pins);
    struct block *fillers = own(game.live, sizeof *fillers);
    const char **places = own(game.live, sizeof *places);
    double going = spread(n, places, fillers);
    double staying = going < 0.9 ? alternate(n) : 0;
    while (!game.stopped) {
        size_t before = pin_count;
        if (going >= staying) {
            spread(n, places, fillers);
        } else {
            alternate(n);
        }
        /* Less than a row of two, or nothing left to pin. */
        if (pin_count == before) break;
    }
    sample();
}
