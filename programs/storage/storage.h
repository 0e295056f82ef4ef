/* How a program gets and gives back its objects, in three ways that Zorn compares (1992, section 5.2):
 *
 * - plainly ("unoptimized"): every object is a block of malloc, given back by free;
 * - with OPTIMIZED defined ("optimized"): objects of the common types come from lists of the program's own, one for each
 *   type, which are filled by cutting up larger blocks, as gawk and perl do it. What is given back goes onto its list and
 *   never to free;
 * - with COLLECTED defined ("gc"): nothing is given back, for a collector in malloc's place. Reference counts have no
 *   purpose then, and a program leaves them out too.
 *
 * The program is the same in all three, and prints the same. */
#ifndef STORAGE_H
#define STORAGE_H

#include <stddef.h>

#include "../common/checked.h"

#if defined OPTIMIZED && defined COLLECTED
#error "OPTIMIZED and COLLECTED are two programs"
#endif

/* Blocks of no common type: buffers, tables. */
static inline void give_back(void *block) {
#ifdef COLLECTED
    (void)block;
#else
    free(block);
#endif
}

/* A type whose objects are common. All of its objects have at most the bytes that the first one was requested with. */
struct kind {
#ifdef OPTIMIZED
    void *vacant; /* linked through the first word of each */
    unsigned char *fresh;
    size_t left;
#else
    char unused;
#endif
};

/* A little under a page, so that a header of malloc's does not make it more. */
enum { CHUNK_BYTES = 4000 };

static inline void *kind_take(struct kind *kind, size_t bytes) {
#ifdef OPTIMIZED
    bytes = (bytes + 7) & ~(size_t)7;
    void *object = kind->vacant;
    if (object != NULL) {
        memcpy(&kind->vacant, object, sizeof kind->vacant);
        return object;
    }
    if (kind->left < bytes) {
        kind->left = CHUNK_BYTES / bytes * bytes;
        if (kind->left == 0) kind->left = bytes;
        kind->fresh = must(malloc(kind->left));
    }
    object = kind->fresh;
    kind->fresh += bytes;
    kind->left -= bytes;
    return object;
#else
    (void)kind;
    return must(malloc(bytes));
#endif
}

static inline void kind_give(struct kind *kind, void *object) {
#ifdef OPTIMIZED
    if (object == NULL) return;
    memcpy(object, &kind->vacant, sizeof kind->vacant);
    kind->vacant = object;
#else
    (void)kind;
    give_back(object);
#endif
}

/* Objects of one type that differ in size, as strings do: a list for each multiple of 16 bytes up to 16 * KINDS, and
 * larger ones are blocks of malloc. The caller that frees one passes its size. */
enum { KINDS = 16 };

struct kinds {
    struct kind of[KINDS];
};

static inline void *kinds_take(struct kinds *kinds, size_t bytes) {
#ifdef OPTIMIZED
    size_t class = (bytes + 15) / 16;
    if (class > 0 && class <= KINDS) return kind_take(&kinds->of[class - 1], class * 16);
#endif
    (void)kinds;
    return must(malloc(bytes));
}

static inline void kinds_give(struct kinds *kinds, void *object, size_t bytes) {
#ifdef OPTIMIZED
    size_t class = (bytes + 15) / 16;
    if (class > 0 && class <= KINDS) {
        if (object != NULL) kind_give(&kinds->of[class - 1], object);
        return;
    }
#endif
    (void)kinds;
    (void)bytes;
    give_back(object);
}

#endif
