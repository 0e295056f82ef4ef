/* Shared by the programs that mark their requests: a checksum and skewed random numbers. */
#ifndef COMMON_H
#define COMMON_H

#include "../common/arguments.h"
#include "../common/random.h"

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

/* Below `limit`, small numbers more often: the range is halved as often as a coin shows heads, so that number k comes
 * up about as often as 1/k. That is near Zipf's law, the distribution of keys in practice, and exact on every machine,
 * as the C library's logarithms are not. */
static inline uint64_t skewed(uint64_t *state, uint64_t limit) {
    uint64_t coins = next_random(state) | UINT64_C(1) << 40;
    uint64_t range = limit >> __builtin_ctzll(coins);
    return below(state, range > 0 ? range : 1);
}

#endif
