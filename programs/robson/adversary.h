/* Shared by the adversary's files: blocks, its view of the manager, and its own memory.
 *
 * Sizes are counted in units. A unit is a power of two of bytes; a block of k units is requested as k * unit - overhead
 * bytes, so that with the manager's header it takes exactly k units of its heap (grain.c measures the overhead). That
 * is the model of Robson's proofs, in which a block is its words and nothing else. */
#ifndef ADVERSARY_H
#define ADVERSARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
    char *at;     /* as malloc returned it */
    size_t bytes; /* requested */
    size_t units; /* counted against M */
    size_t taken; /* bytes of the heap, as far as known */
};

/* The game: its rules and its state. */
struct game {
    size_t unit;      /* bytes */
    size_t overhead;  /* bytes of a block that the program does not get */
    size_t live;      /* M: units that may be live at once */
    size_t largest;   /* n: units of the largest block, a power of two */
    size_t limit;     /* bytes of addresses used, at which the game stops */
    double seconds;   /* after which the game stops */
    size_t page;      /* bytes of an address range in which `pages` keeps one block */

    size_t now_bytes, now_units, now_taken;    /* live now: requested bytes, units, bytes of heap */
    size_t most_bytes, most_units, most_taken; /* most that was ever live */
    uint64_t gets, gives;
    const char *stopped; /* why the game ended early, or null */
};

extern struct game game;

/* Allocates a block of `units`, every page of it touched; false when the game is over (then `game.stopped` is the
 * reason) or when it would make more than M live, which is a mistake of the strategy. */
bool get(struct block *block, size_t units);
/* Allocates a block of `bytes` that counts as `units`, perhaps none, and takes `taken` bytes of the heap. */
bool get_bytes(struct block *block, size_t bytes, size_t units, size_t taken);
void give(struct block *block);
/* Units that may still be requested. */
static inline size_t spare(void) { return game.live - game.now_units; }
/* The block's first unit, counted from the first block ever allocated. */
int64_t position(const struct block *block);

/* Zeroed memory of the adversary's own, present from the start, never from malloc; ends the program if there is none. */
void *own(size_t count, size_t size);
extern size_t own_bytes; /* how much of it there is */
/* Ends the program with a message. */
void die(const char *message) __attribute__((noreturn));

/* Called where much is live or much has been used: samples the memory of the process. */
void sample(void);

/* Strategies. Each plays until it is done or the game is stopped. */
void play_robson(void);
void play_roving(void);
void play_best_fit(void);
void play_classes(void);
void play_pages(void);
void play_buddy(void);
/* Robson's steps. With `over_half`, a block that takes 2^i units is requested as one byte more than half of that, and
 * counts as half. */
void robson_steps(bool over_half);

/* grain.c: how the manager treats a size, measured in a forked child, which has the heap to itself. */
size_t learn_overhead(size_t unit);
/* Runs the probe in a child; the answer is shared memory. */
void in_child(void (*probe)(void *answer, size_t argument), void *answer, size_t argument);
void *shared(size_t bytes);

/* memory.c: the memory that the manager took. */
void extent_add(uintptr_t from, size_t bytes);
size_t extent_bytes(void);  /* distinct bytes that were ever in a block, in steps of 16 */
size_t extent_span(size_t *pieces); /* highest minus lowest address, summed over pieces of address space that lie
                                     * far apart */
size_t anonymous_bytes(void);  /* of this process, resident now; 0 when unknown */
bool census_find(void);
/* The manager's own figures: mapped now, most ever mapped; false when it reports none. */
bool census_mapped(uint64_t *now, uint64_t *most);
int census_check(void); /* its heap check: 0, an errno value, or -1 when it has none */
const char *census_name(void);
const char *malloc_object(void); /* file that provides malloc, after census_find */

#endif
