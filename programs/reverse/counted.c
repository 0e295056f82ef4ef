/* List reversal (reverse.c) with reference counts in place of free: each assignment to a pointer adjusts two counts, and
 * an element whose count comes to nothing is freed, and then its link. The assignments are those that a smart pointer
 * makes, none left out.
 *
 * usage: reverse LENGTH REVERSALS [BYTES], as reverse.c; BYTES is without the count.
 *
 * When it is compiled it is chosen where the count is:
 *   (nothing)            in the element, which is 8 bytes larger
 *   COUNTED_ATOMIC       there, too, and adjusted atomically, as more than one thread needs it
 *   COUNTED_NONINVASIVE  in a block of its own, to which each pointer leads as well (Barton and Nackman's, which needs
 *                        nothing of the class that is counted) */
#include "reverse.h"

#ifdef COUNTED_ATOMIC
#include <stdatomic.h>
typedef _Atomic size_t counter;
#define UP(count) atomic_fetch_add_explicit(count, 1, memory_order_relaxed)
#define DOWN(count) (atomic_fetch_sub_explicit(count, 1, memory_order_acq_rel) - 1)
#else
typedef size_t counter;
#define UP(count) (++*(count))
#define DOWN(count) (--*(count))
#endif

struct element;

/* A counted pointer. */
#ifdef COUNTED_NONINVASIVE
struct pointer {
    struct element *to;
    counter *count;
};
#define COUNT(pointer) ((pointer).count)
#else
struct pointer {
    struct element *to;
};
#define COUNT(pointer) (&(pointer).to->count)
#endif

struct element {
    struct pointer next;
#ifndef COUNTED_NONINVASIVE
    counter count;
#endif
    uint64_t value[]; /* as in reverse.c */
};

static size_t values;
static uint64_t freed; /* elements so far */

/* Takes one from the count, and frees what is not pointed to any more, link by link. */
static inline void release(struct pointer pointer) {
    while (pointer.to && DOWN(COUNT(pointer)) == 0) {
        struct pointer next = pointer.to->next;
#ifdef COUNTED_NONINVASIVE
        free(pointer.count);
#endif
        free(pointer.to);
        freed++;
        pointer = next;
    }
}

static inline void assign(struct pointer *place, struct pointer value) {
    if (value.to) UP(COUNT(value));
    struct pointer old = *place;
    *place = value;
    release(old);
}

/* An element that nothing points to yet. */
static struct pointer element(uint64_t value, struct pointer next) {
    struct pointer new = {.to = must(malloc(sizeof(struct element) + values * sizeof(uint64_t)))};
#ifdef COUNTED_NONINVASIVE
    new.count = must(malloc(sizeof *new.count));
#endif
    *COUNT(new) = 0;
    new.to->next = (struct pointer){0};
    assign(&new.to->next, next);
    for (size_t i = 0; i < values; i++) new.to->value[i] = value;
    return new;
}

static void reverse(struct pointer *result, const struct pointer *list) {
    struct pointer at = {0};
    for (assign(&at, *list); at.to; assign(&at, at.to->next))
        assign(result, element(values ? at.to->value[0] : 0, *result));
}

static void check(const struct pointer *list, uint64_t *length, uint64_t *sum) {
    *length = 0;
    struct pointer at = {0};
    for (assign(&at, *list); at.to; assign(&at, at.to->next)) {
        ++*length;
        if (values) fold(sum, at.to->value[0]);
    }
}

int main(int count, char **arguments) {
    const struct task task = parse_arguments(count, arguments);
    values = task.values;
    struct pointer list = {0}, none = {0};
    for (uint64_t i = 0; i < task.length; i++) assign(&list, element(i, list));
    uint64_t found = 0, done = 0, sum = 0;
    while (done < task.reversals) {
        struct pointer new = {0};
        reverse(&new, &list);
        uint64_t before = freed;
        assign(&list, new);
        assign(&new, none);
        fold(&sum, freed - before + done++);
        if (done % 2 == 0) check(&list, &found, &sum);
    }
    check(&list, &found, &sum);
    assign(&list, none);
    return report(&task, found, done, sum);
}
