/* Functional reversal of a list, the old list freed each time: the test of Boehm's "Memory Allocation Myths and
 * Half-Truths". The live heap is one list (two while a reversal is under way), everything else is turnover.
 *
 * usage: reverse LENGTH REVERSALS [BYTES]
 * BYTES is the size of an element, 40 when not given; an element of 8 bytes is a bare link, whose place in the list
 * alone is its value.
 *
 * When it is compiled it is chosen what becomes of the old list:
 *   (nothing)             each element is freed
 *   REVERSE_CUSTOM        elements come from, and go to, a free list of their class, which is refilled by malloc
 *   REVERSE_INLINED       elements come from a general allocator for one thread that is compiled into the program, so that
 *                         the size's class is known where it is called: his "vendor fast". Powers of two, a word before
 *                         each block, never split or combined (Kingsley's)
 *   REVERSE_GC            nothing is freed: for a collector behind malloc, or for none
 *   REVERSE_FREE_AT_EXIT  nothing is freed before the end, and everything then
 * The output is the same. */
#include "reverse.h"

struct element {
    struct element *next;
    uint64_t value[]; /* the first is the value, the rest ballast; an element of 8 bytes has none */
};

static size_t values; /* of each element */

static size_t element_bytes(void) { return sizeof(struct element) + values * sizeof(uint64_t); }

#ifdef REVERSE_CUSTOM

static struct element *spare; /* the class's own free list */

/* Elements for the free list, as many as go into some pages. */
static __attribute__((noinline)) void refill(void) {
    size_t each = element_bytes(), fit = 16000 / each + 1;
    char *chunk = must(malloc(fit * each));
    for (size_t i = fit; i-- > 0;) {
        struct element *element = (struct element *)(chunk + i * each);
        element->next = spare;
        spare = element;
    }
}

static inline struct element *take(void) {
    if (!spare) refill();
    struct element *element = spare;
    spare = element->next;
    return element;
}

static inline void give(struct element *element) {
    element->next = spare;
    spare = element;
}

#elif defined REVERSE_INLINED

union block {
    union block *next; /* while it is free */
    size_t class;      /* while it is live */
};

enum { CLASSES = 48, SMALLEST = 4 /* 16 bytes, the word before it among them */, CHUNK = 64 << 10 };

static union block *classes[CLASSES]; /* free blocks of 2^class bytes */

static __attribute__((noinline)) void refill(size_t class) {
    size_t each = (size_t)1 << class, fit = each < CHUNK ? CHUNK / each : 1;
    char *chunk = must(malloc(fit * each));
    for (size_t i = fit; i-- > 0;) {
        union block *block = (union block *)(chunk + i * each);
        block->next = classes[class];
        classes[class] = block;
    }
}

static inline void *allocate(size_t bytes) {
    size_t class = SMALLEST;
    while (((size_t)1 << class) < bytes + sizeof(union block)) class++;
    if (!classes[class]) refill(class);
    union block *block = classes[class];
    classes[class] = block->next;
    block->class = class;
    return block + 1;
}

static inline void deallocate(void *address) {
    union block *block = (union block *)address - 1;
    size_t class = block->class;
    block->next = classes[class];
    classes[class] = block;
}

static inline struct element *take(void) { return allocate(element_bytes()); }

static inline void give(struct element *element) { deallocate(element); }

#else

static inline struct element *take(void) { return must(malloc(element_bytes())); }

static inline void give(struct element *element) { free(element); }

#endif

static struct element *cons(uint64_t value, struct element *next) {
    struct element *new = take();
    new->next = next;
    for (size_t i = 0; i < values; i++) new->value[i] = value;
    return new;
}

static struct element *reversed(const struct element *list) {
    struct element *result = NULL;
    for (; list; list = list->next) result = cons(values ? list->value[0] : 0, result);
    return result;
}

#ifndef REVERSE_GC

/* How many elements it freed. */
static uint64_t freed(struct element *list) {
    uint64_t freed = 0;
    for (; list; freed++) {
        struct element *next = list->next;
        give(list);
        list = next;
    }
    return freed;
}

#endif

/* Drops a list of `length` elements. Their number goes into the checksum, whether they were freed or not. */
#if defined REVERSE_GC

static uint64_t drop(struct element *list, uint64_t length) {
    (void)list;
    return length;
}

static void at_exit(void) {}

#elif defined REVERSE_FREE_AT_EXIT

static struct element **dead;
static size_t dead_lists, capacity;

static uint64_t drop(struct element *list, uint64_t length) {
    if (dead_lists == capacity) {
        capacity = capacity ? 2 * capacity : 1024;
        dead = must(realloc(dead, capacity * sizeof *dead));
    }
    dead[dead_lists++] = list;
    return length;
}

static void at_exit(void) {
    for (size_t i = 0; i < dead_lists; i++) freed(dead[i]);
    free(dead);
}

#else

static uint64_t drop(struct element *list, uint64_t length) {
    (void)length;
    return freed(list);
}

static void at_exit(void) {}

#endif

/* The elements' number and, where they have values, a checksum that depends on their order. */
static void check(const struct element *list, uint64_t *length, uint64_t *sum) {
    for (*length = 0; list; list = list->next) {
        ++*length;
        if (values) fold(sum, list->value[0]);
    }
}

int main(int count, char **arguments) {
    const struct task task = parse_arguments(count, arguments);
    values = task.values;
    struct element *list = NULL;
    for (uint64_t i = 0; i < task.length; i++) list = cons(i, list);
    uint64_t found = 0, done = 0, sum = 0;
    while (done < task.reversals) {
        struct element *new = reversed(list);
        /* Each reversal changes the checksum, also without values: its number, and how many it dropped. */
        fold(&sum, drop(list, task.length) + done++);
        list = new;
        if (done % 2 == 0) check(list, &found, &sum);
    }
    check(list, &found, &sum);
    drop(list, task.length);
    at_exit();
    return report(&task, found, done, sum);
}
