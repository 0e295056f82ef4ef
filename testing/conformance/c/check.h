/* check.h: used by every case of the suite. It never allocates, so that all calls a manager sees are a case's own.
 *
 * A case is a function that runs in its own process. It returns when all holds; otherwise it writes the reason to
 * standard error and ends with status 1. Behaviour that a manager is free to choose is noted on standard output and not
 * judged.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The managers to which a case applies, and how its end is judged. */
#define PLAIN "plain"     /* every manager */
#define CONTROL "control" /* those that export heaptoll_control_v1 */
#define MISUSE "misuse"   /* a defect of the program: its effect is recorded */
#define SECURITY "security" /* a defect, and whether an attacker gains by it: a program of its own */

struct test_case {
    const char *name, *kind, *about;
    void (*run)(void);
    struct test_case *next;
};
void add_case(struct test_case *added);

/* Each case adds itself to the list before main. */
#define CASE(kind, id, about)                                                     \
    static void id(void);                                                         \
    static struct test_case case_##id = {#id, kind, about, id, NULL};             \
    __attribute__((constructor)) static void add_##id(void) { add_case(&case_##id); } \
    static void id(void)

/* The name of the case that this process runs; null before main. */
extern const char *case_name;

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);
__attribute__((noreturn)) void not_applicable(const char *reason);
#define CHECK(condition, ...)         \
    do {                              \
        if (!(condition))             \
            fail(__VA_ARGS__);        \
    } while (0)

/* How often to repeat: `full`, or `quick` in the quick form of the suite. */
size_t effort(size_t full, size_t quick);

/* Hides a number from the compiler, which would otherwise evaluate the call at compile time. */
size_t hidden(size_t number);
void *hidden_pointer(void *pointer);

/* xorshift64*, seeded with anything but 0. */
struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *rng);
size_t rng_below(struct rng *rng, size_t limit);

/* A pattern that depends on `seed`: every byte of blocks up to 4 KiB, both ends and samples of larger ones. */
void fill(void *block, size_t size, uint64_t seed);
/* The offset of the first byte that does not fit, or -1. */
ptrdiff_t damage(const void *block, size_t size, uint64_t seed);
void check_filled(const void *block, size_t size, uint64_t seed, const char *what);

/* Sizes on both sides of where size classes tend to end: 2^k and 1.5 * 2^k, each one less, itself and one more. */
#define BORDERS 128
size_t border_sizes(size_t sizes[BORDERS], size_t largest);

/* Resident memory of this process, bytes. */
size_t resident_bytes(void);

/* Starts this program again with `NAME=VALUE` set, unless it is already. */
void again_with(const char *name, const char *value);

/* The manager's control struct, or null. */
const struct heaptoll_control *control(void);
/* Census identity and the manager's own check, where there is a control struct. */
void check_heap(const char *when);

#ifdef __cplusplus
}
#endif

#endif
