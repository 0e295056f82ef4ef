/* check.h: what every case of the suite uses. It never allocates, so that all traffic a manager sees is a case's own.
 *
 * A case is a function of its own process. It returns when all holds; otherwise it says why on standard error and
 * ends with status 1. What a manager may decide for itself is noted on standard output and judged by nobody.
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

/* Which managers a case asks, and how its end is read. */
#define PLAIN "plain"     /* every manager */
#define CONTROL "control" /* those that export heaptoll_control_v1 */
#define MISUSE "misuse"   /* a defect of the program: what happens is recorded */

struct test_case {
    const char *name, *kind, *about;
    void (*run)(void);
    struct test_case *next;
};
void add_case(struct test_case *added);

/* Each case enters itself in the list before main. */
#define CASE(kind, id, about)                                                     \
    static void id(void);                                                         \
    static struct test_case case_##id = {#id, kind, about, id, NULL};             \
    __attribute__((constructor)) static void add_##id(void) { add_case(&case_##id); } \
    static void id(void)

/* The name of the case that this process runs; null before main. */
extern const char *case_name;

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);
__attribute__((noreturn)) void not_asked(const char *reason);
#define CHECK(condition, ...)         \
    do {                              \
        if (!(condition))             \
            fail(__VA_ARGS__);        \
    } while (0)

/* How often to repeat: `full`, or `quick` when the suite is to be quick. */
size_t effort(size_t full, size_t quick);

/* A number that the compiler cannot know, or it would judge the call at compile time. */
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

/* Starts this program again with `NAME=VALUE` set, unless it is. */
void again_with(const char *name, const char *value);

/* The manager's control struct, or null. */
const struct heaptoll_control *control(void);
/* Census identity and the manager's own check, where there is a control struct. */
void check_heap(const char *when);

#ifdef __cplusplus
}
#endif

#endif
