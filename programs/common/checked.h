/* What the bundled programs do when an allocation or a call fails. */
#ifndef COMMON_CHECKED_H
#define COMMON_CHECKED_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The program's name, for messages; each program defines its own. */
extern const char *const program;

/* Ends the program with status 1. */
static inline void fail_with(const char *what, int error) {
    fprintf(stderr, "%s: %s: %s\n", program, what, strerror(error));
    exit(1);
}

/* The block, unless there is none: that ends the program with status 1. */
static inline void *must(void *block) {
    if (block == NULL) {
        fprintf(stderr, "%s: out of memory\n", program);
        exit(1);
    }
    return block;
}

#endif
