/* `classes`: against segregated storage that never coalesces (kingsley, pow2), or does so only by whole chunks
 * (haertel).
 *
 * A block once carved for a size class serves that class for ever. So M bytes of the smallest class are requested and
 * all freed, then M of the next, and so on: the heap has M for each class, M log2 n with powers of two. On top, each
 * class is requested in the smallest size that goes to it, one byte more than the class below can hold: with powers of
 * two almost half of every block is waste, and the factor over the requested bytes doubles.
 *
 * The classes are found by requesting every size, in a child, and observing when the usable size changes; where that
 * shows nothing (a usable size that always equals the request), powers of two are assumed. The block's place in the
 * heap is taken to be its usable size and the overhead.
 *
 * `pages` is the same against managers that give classes whole pages, and a page that is empty to any class: of each
 * range of addresses of that size one block is kept. */
#define _GNU_SOURCE
#include "adversary.h"

#include <malloc.h>
#include <stdlib.h>

#define MOST_CLASSES 4096

struct classes {
    size_t count;
    size_t smallest[MOST_CLASSES]; /* size that goes to the class, bytes */
    size_t usable[MOST_CLASSES];
};

static void learn(void *answer, size_t largest) {
    struct classes *classes = answer;
    size_t before = 0;
    for (size_t bytes = game.unit - game.overhead; bytes <= largest && classes->count < MOST_CLASSES; bytes++) {
        void *block = malloc(bytes);
        size_t usable = block ? malloc_usable_size(block) : 0;
        free(block);
        if (usable <= before) continue;
        classes->smallest[classes->count] = bytes;
        classes->usable[classes->count++] = usable;
        before = usable;
        /* Every size up to the usable one is known. */
        bytes = usable;
    }
}

static struct classes *learned(void) {
    struct classes *classes = shared(sizeof *classes);
    in_child(learn, classes, game.largest * game.unit - game.overhead);
    /* Sizes in steps of the alignment are no classes: what is left is a power of two each. */
    size_t steps = 0;
    for (size_t i = 1; i < classes->count; i++) steps += classes->usable[i] - classes->usable[i - 1] <= 16;
    if (classes->count == 0 || steps * 2 > classes->count) {
        classes->count = 0;
        for (size_t units = 1; units <= game.largest; units *= 2) {
            classes->smallest[classes->count] = classes->usable[classes->count] = units * game.unit - game.overhead;
            classes->count++;
        }
    }
    return classes;
}

static void play(size_t page) {
    struct classes *classes = learned();
    size_t most = game.live + 1;
    struct block *blocks = own(most, sizeof *blocks);
    size_t kept = 0;
    for (size_t class = 0; class < classes->count && !game.stopped; class++) {
        size_t bytes = classes->smallest[class];
        /* M counts requested bytes here: rounding up is the manager's doing. */
        size_t count = kept;
        while (game.now_bytes + bytes <= game.live * (game.unit - game.overhead) && count < most &&
               get_bytes(&blocks[count], bytes, 0, classes->usable[class] + game.overhead)) {
            count++;
        }
        sample();
        size_t keep = kept;
        uintptr_t last = 0;
        for (size_t i = kept; i < count; i++) {
            uintptr_t here = page ? (uintptr_t)blocks[i].at / page : 0;
            if (page && here != last && class + 1 < classes->count) {
                last = here;
                blocks[keep++] = blocks[i];
            } else {
                give(&blocks[i]);
            }
        }
        kept = keep;
    }
    sample();
}

void play_classes(void) { play(0); }

void play_pages(void) { play(game.page); }
