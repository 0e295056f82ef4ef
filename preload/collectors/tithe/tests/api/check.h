/* check.h: shared by the cases: checks that end the program, and blocks whose addresses are hidden. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tithe.h"

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

#define NOINLINE __attribute__((noinline))
#define SEVERAL 200
/* A few may be kept by stray words on the stack. */
#define NEARLY_ALL (SEVERAL - SEVERAL / 20)

/* Whether tithe_free does anything. */
static inline int frees(void) {
    const char *mode = getenv("TITHE_MODE");
    return !mode || strcmp(mode, "collect") != 0;
}

/* The block's size with the byte after its end, which Tithe adds and tithe_usable_size leaves out. */
static inline size_t whole_size(const void *block) { return (tithe_usable_size(block) + 15) & ~(size_t)15; }

/* The addresses with all bits inverted, so that the collector does not see them. */
extern uintptr_t hidden[SEVERAL];

static inline void *shown(uintptr_t word) { return (void *)~word; }

/* A new file, which has its name until the program ends. */
int named_file(void);
/* Clears what earlier calls have left on the stack and in registers. */
void wipe(void);
/* Fills `hidden` with fresh blocks, each full of the byte 0x55. */
void make_several(size_t bytes, int atomic);
/* How many of them are live. */
int live_of_several(void);

/* The cases. */
void case_blocks(void);
void case_misuse(void);
void case_atomic(void);
void case_collect(void);
void case_explicit(void);
void case_unstoppable(void);
void case_roots(void);
void case_threads(void);
void case_fork(void);
void case_stats(void);
void case_live(void);
void case_queries(void);
void case_registers(void);
void case_inaccessible(void);
void case_why(void);
void case_chain(void);
void case_held(void);
void case_variable(void);
void case_neighbours(void);

#endif
