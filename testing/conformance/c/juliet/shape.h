/* shape.h: Juliet's cases of CWE-415 (double free) and CWE-416 (use after free) by shape, written anew. A program frees
 * data, an attacker allocates, and the program frees the data again or reads them. The way of the data from the free to
 * the defect is a numbered flow, as Juliet numbers them.
 *
 * Sources named `flows` are compiled once for each PART, 1 to 5: Juliet's different source files. They include
 * `kinds.inc` for each way to allocate, and that includes the flows for each type. */
#ifndef SHAPE_H
#define SHAPE_H

#include "../check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the program writes to its data, and the attacker to each of its blocks. */
enum { OWN = 0xc3, ATTACKERS = 0x5a };

/* The attacker takes many blocks of the data's size and writes to them; a collector has a pass meanwhile. */
void attack(void *(*take)(void), size_t size);
/* Whether this process is to free twice, not to read. */
int frees_twice(void);
/* States what was read: `happened` for another object's data, `zeroes`, or `prevented` for what is nobody else's. */
void judge_read(const void *read, size_t size);
/* Takes more blocks after a second free, as the program's own. The same line: whether they are the attacker's too. */
void judge_blocks(void *(*take)(void), size_t size);

struct two_ints {
    int first, second;
};

/* What flows 04 to 14 ask. */
#if PART == 1
static const int static_const_true = 1, static_const_five = 5;
static int static_true = 1, static_five = 5;
static int static_returns_true(void) { return 1; }
#endif
extern const int global_const_true, global_const_five;
extern int global_true, global_five;
int is_so(void);

#ifdef __cplusplus
}
#endif

#endif
