/* Random numbers, the same in every run and on every machine. */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <stdint.h>

/* xorshift64*, Vigna 2016 */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* xorshift64, Marsaglia 2003 */
static inline uint64_t next_xorshift(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Below `limit`, all alike. */
static inline uint64_t below(uint64_t *state, uint64_t limit) {
    return (uint64_t)((unsigned __int128)next_random(state) * limit >> 64);
}

/* Below `limit`, which is at most 2^32, from the upper half of the number. */
static inline uint64_t below_32(uint64_t *state, uint64_t limit) { return (next_random(state) >> 32) * limit >> 32; }

#endif
