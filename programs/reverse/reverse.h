/* What all forms of the list reversal share: arguments, the checksum, and the loop over them is in reverse.c (explicit,
 * or none), counted.c (reference counts) and shared.cc (std::shared_ptr). */
#ifndef REVERSE_H
#define REVERSE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void fold(uint64_t *sum, uint64_t value) {
    *sum = *sum * UINT64_C(6364136223846793005) + value + 1;
}

static inline void out_of_memory(void) {
    fputs("reverse: out of memory\n", stderr);
    exit(1);
}

static inline uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-') {
        fprintf(stderr, "reverse: `%s` is no number; usage: reverse LENGTH REVERSALS [BYTES]\n", text);
        exit(2);
    }
    return value;
}

/* What is asked for. `values` are the 8-byte words of an element besides its link. */
struct asked {
    uint64_t length, reversals, values;
};

static inline struct asked asked(int count, char **arguments) {
    if (count != 3 && count != 4) {
        fputs("usage: reverse LENGTH REVERSALS [BYTES]\n", stderr);
        exit(2);
    }
    struct asked asked = {number(arguments[1]), number(arguments[2]), 0};
    uint64_t bytes = count == 4 ? number(arguments[3]) : 40;
    if (bytes < 8 || bytes % 8) {
        fputs("reverse: the bytes of an element are a multiple of 8\n", stderr);
        exit(2);
    }
    asked.values = bytes / 8 - 1;
    return asked;
}

static inline int told(const struct asked *asked, uint64_t found, uint64_t done, uint64_t sum) {
    printf("%llu elements, %llu reversals, checksum %016llx\n", (unsigned long long)found, (unsigned long long)done,
           (unsigned long long)sum);
    return found != asked->length;
}

#endif
