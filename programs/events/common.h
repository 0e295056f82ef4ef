/* Shared by the programs that mark their requests: numbers on the command line, random numbers, checked allocation, a
 * checksum. */
#ifndef COMMON_H
#define COMMON_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FNV_BEGIN UINT64_C(14695981039346656037)

/* Folds bytes into a checksum (FNV-1a, Fowler, Noll and Vo). */
static inline uint64_t fold(uint64_t sum, const void *bytes, size_t length) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length; i++) sum = (sum ^ byte[i]) * UINT64_C(1099511628211);
    return sum;
}

static inline uint64_t fold_number(uint64_t sum, uint64_t number) {
    return (sum ^ number) * UINT64_C(1099511628211);
}

/* xorshift64*, Vigna 2016 */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Below `limit`, all alike. */
static inline uint64_t below(uint64_t *state, uint64_t limit) {
    return (uint64_t)((unsigned __int128)next_random(state) * limit >> 64);
}

/* Below `limit`, small numbers more often: the range is halved as often as a coin shows heads, so that number k comes
 * up about as often as 1/k. That is near Zipf's law, the distribution of keys in practice, and exact on every machine,
 * as the C library's logarithms are not. */
static inline uint64_t skewed(uint64_t *state, uint64_t limit) {
    uint64_t coins = next_random(state) | UINT64_C(1) << 40;
    uint64_t range = limit >> __builtin_ctzll(coins);
    return below(state, range > 0 ? range : 1);
}

/* For messages. */
extern const char *const program;

static inline void *must(void *block) {
    if (block == NULL) {
        fprintf(stderr, "%s: out of memory\n", program);
        exit(1);
    }
    return block;
}

/* A number from `least` to `most`; anything else ends the program with status 2. */
static inline uint64_t number(const char *text, const char *name, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    unsigned long long value = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : (end = (char *)text, 0);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "%s: %s is a number from %llu to %llu, not '%s'\n", program, name, (unsigned long long)least,
                (unsigned long long)most, text);
        exit(2);
    }
    return value;
}

#endif
