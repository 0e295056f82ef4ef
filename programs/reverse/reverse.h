/* Shared by all forms of the list reversal: arguments and the checksum; the loop over them is in reverse.c (explicit,
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

/* The work to do. `values` are the 8-byte words of an element in addition to its link. */
struct task {
    uint64_t length, reversals, values;
};

static inline struct task parse_arguments(int count, char **arguments) {
    if (count != 3 && count != 4) {
        fputs("usage: reverse LENGTH REVERSALS [BYTES]\n", stderr);
        exit(2);
    }
    struct task task = {number(arguments[1]), number(arguments[2]), 0};
    uint64_t bytes = count == 4 ? number(arguments[3]) : 40;
    if (bytes < 8 || bytes % 8) {
        fputs("reverse: the bytes of an element are a multiple of 8\n", stderr);
        exit(2);
    }
    task.values = bytes / 8 - 1;
    return task;
}

static inline int report(const struct task *task, uint64_t found, uint64_t done, uint64_t sum) {
    printf("%llu elements, %llu reversals, checksum %016llx\n", (unsigned long long)found, (unsigned long long)done,
           (unsigned long long)sum);
    return found != task->length;
}

#endif
