/* ---- The general heap: blocks of any size with a word in front, best fit, coalesced when freed. It serves the sizes
 * that are too rare for a class, and the chunks of the classes. The block at the end is the top: fresh memory. ---- */

/* The word in front of a block holds its length, a multiple of 16 that includes the word, and two flags. A free block
 * has its length in its last word as well, below the next block's word. */
enum { FREE = 1, AFTER_FREE = 2, LENGTH_FLAGS = 15, MIN_LENGTH = 32 };
/* Bins, and blocks of a bin that are looked at for the best. */
enum { BINS = 280, BIN_TRIES = 16 };

struct free_block {
    struct free_block *next, **place;
};

static byte *top;                        /* the block at the end of the heap, which has no word in front */
static struct free_block *bins[BINS];    /* free blocks by length */
static uint64_t filled[(BINS + 63) / 64]; /* which of them hold any */

static inline size_t *word_of(void *block) { return (size_t *)block - 1; }
static inline size_t length_of(void *block) { return *word_of(block) & ~(size_t)LENGTH_FLAGS; }

/* Exact bins below 1 KiB, from there eight for each power of two. */
static unsigned bin_of(size_t length) {
    if (length < 1024)
        return length / 16;
    unsigned log = 63 - __builtin_clzl(length);
    return 64 + (log - 10) * 8 + ((length >> (log - 3)) & 7);
}

static void insert_free(byte *block, size_t length) {
    unsigned bin = bin_of(length);
    struct free_block *free = (struct free_block *)block;
    *word_of(block) = length | FREE;
    *word_of(block + length - 8) = length;
    *word_of(block + length) |= AFTER_FREE;
    free->place = &bins[bin];
    free->next = bins[bin];
    if (free->next)
        free->next->place = &free->next;
    bins[bin] = free;
    filled[bin / 64] |= 1ul << bin % 64;
}

static void remove_free(byte *block, size_t length) {
    struct free_block *free = (struct free_block *)block;
    *free->place = free->next;
    if (free->next)
        free->next->place = free->place;
    unsigned bin = bin_of(length);
    if (!bins[bin])
        filled[bin / 64] &= ~(1ul << bin % 64);
}

/* The first bin from this one on that holds a block; BINS when there is none. */
static unsigned filled_bin(unsigned bin) {
    for (unsigned word = bin / 64; word < (BINS + 63) / 64; word++) {
        uint64_t bits = filled[word];
        if (word == bin / 64)
            bits &= ~0ul << bin % 64;
        if (bits)
            return word * 64 + __builtin_ctzl(bits);
    }
    return BINS;
}

/* Takes `length` bytes at `at` out of a free block, which is in no bin; what is left on both sides is free again. */
static byte *cut(byte *block, size_t have, byte *at, size_t length) {
    byte *end = block + have;
    if (at > block)
        insert_free(block, at - block);
    if ((size_t)(end - at) - length < MIN_LENGTH)
        length = end - at;
    *word_of(at) = length | (at > block ? AFTER_FREE : 0);
    if (at + length < end)
        insert_free(at + length, end - at - length);
    else
        *word_of(end) &= ~(size_t)AFTER_FREE;
    return at;
}

/* The heap begins behind the table of units. */
static bool start_heap(void) {
    if (!region && !reserve_region())
        return false;
    if (!top)
        top = heap_end + 16;
    return true;
}

/* Where in a free block an aligned one begins: at its beginning, or behind a free block. */
static inline byte *aligned_in(byte *block, size_t align) {
    byte *at = (byte *)round_up((uintptr_t)block, align);
    return at > block && at < block + MIN_LENGTH ? at + align : at;
}

/* The best of the first blocks of a bin in which an aligned block fits. */
static byte *best_in(unsigned bin, size_t length, size_t align) {
    byte *best = NULL;
    unsigned left = BIN_TRIES;
    for (struct free_block *free = bins[bin]; free && left; free = free->next, left--) {
        byte *block = (byte *)free;
        size_t have = length_of(block);
        if (aligned_in(block, align) + length > block + have || (best && have >= length_of(best)))
            continue;
        best = block;
        if (have < length + MIN_LENGTH)
            break;
    }
    return best;
}

/* Whether the heap reaches, or can be made to reach, so far that a top is left. */
static bool reaches(byte *at, size_t length) {
    return length < region_bytes && (at + length + 16 <= heap_end || grow_heap(at + length + 16));
}

/* A block from the top, for which the heap may have to grow. */
static byte *take_top(size_t length, size_t align) {
    byte *at = aligned_in(top, align);
    if (!reaches(at, length))
        return NULL;
    byte *block = top;
    top = at + length;
    *word_of(at) = length;
    if (at > block) {
        *word_of(block) = 0;
        insert_free(block, at - block);
    }
    if (top > untouched)
        untouched = top;
    return at;
}

/* A block of `length` bytes, its word included; null when the system refuses. */
static byte *take(size_t length, size_t align) {
    unsigned bins_left = align > 16 ? BIN_TRIES : BINS;
    for (unsigned bin = filled_bin(bin_of(length)); bin < BINS && bins_left; bin = filled_bin(bin + 1), bins_left--) {
        byte *block = best_in(bin, length, align);
        if (!block)
            continue;
        size_t have = length_of(block);
        remove_free(block, have);
        return cut(block, have, aligned_in(block, align), length);
    }
    return take_top(length, align);
}

/* Gives the whole pages of free memory back to the system, which refuses where they are locked. Afterwards they are
 * zero. */
static bool give_back(byte *from, byte *to) {
    from = (byte *)round_up((uintptr_t)from, PAGE);
    to = (byte *)((uintptr_t)to & ~(uintptr_t)(PAGE - 1));
    return from < to && madvise(from, to - from, MADV_DONTNEED) == 0;
}

static void give(byte *block) {
    size_t length = length_of(block);
    byte *next = block + length;
    if (*word_of(block) & AFTER_FREE) {
        size_t before = *word_of(block - 8);
        block -= before;
        remove_free(block, before);
        length += before;
    }
    if (next == top) {
        top = block;
        /* The last touched page goes back whole: the heap ends with a page. */
        byte *end = (byte *)round_up((uintptr_t)untouched, PAGE);
        if (untouched - top >= (ptrdiff_t)GIVE_BACK_BYTES && give_back(top, end))
            untouched = (byte *)round_up((uintptr_t)top, PAGE);
        return;
    }
    if (*word_of(next) & FREE) {
        remove_free(next, length_of(next));
        length += length_of(next);
    }
    insert_free(block, length);
    if (length >= GIVE_BACK_BYTES)
        give_back(block + sizeof(struct free_block), block + length - 16);
}

/* Makes a block longer or shorter where it is; false when it has no space. */
static bool resize(byte *block, size_t length) {
    size_t have = length_of(block);
    byte *next = block + have;
    if (length > have && next == top) {
        if (!reaches(block, length))
            return false;
        top = block + length;
        if (top > untouched)
            untouched = top;
        *word_of(block) += length - have;
        return true;
    }
    if (length > have) {
        if (!(*word_of(next) & FREE) || have + length_of(next) < length)
            return false;
        size_t more = length_of(next);
        remove_free(next, more);
        *word_of(next + more) &= ~(size_t)AFTER_FREE;
        *word_of(block) += more;
        have += more;
    }
    if (have - length >= MIN_LENGTH) {
        *word_of(block) -= have - length;
        *word_of(block + length) = have - length;
        give(block + length);
    }
    return true;
}
