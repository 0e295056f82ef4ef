/* Shared by all forms of the list reversal: arguments and the checksum; the loop over them is in reverse.c (explicit,
 * or none), counted.c (reference counts) and shared.cc (std::shared_ptr). */
#ifndef REVERSE_H
#define REVERSE_H

#include "../common/arguments.h"

const char *const program = "reverse";

static inline void fold(uint64_t *sum, uint64_t value) {
    *sum = *sum * UINT64_C(6364136223846793005) + value + 1;
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
    struct task task = {number(arguments[1], "LENGTH", 0, UINT64_MAX), number(arguments[2], "REVERSALS", 0, UINT64_MAX), 0};
    uint64_t bytes = count == 4 ? number(arguments[3], "BYTES", 0, UINT64_MAX) : 40;
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
