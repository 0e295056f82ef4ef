/* Functional reversal of a list, the old list freed each time: the test of Boehm's "Memory Allocation Myths and
 * Half-Truths". The live heap is one list (two while a reversal is under way), everything else is turnover.
 *
 * usage: reverse LENGTH REVERSALS [BYTES]
 * BYTES is the size of an element, 40 when not given; an element of 8 bytes is a bare link, whose place in the list
 * alone is its value. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct element {
    struct element *next;
    uint64_t value[]; /* the first is the value, the rest ballast; an element of 8 bytes has none */
};

static size_t values; /* of each element */

static struct element *cons(uint64_t value, struct element *next) {
    struct element *new = malloc(sizeof *new + values * sizeof new->value[0]);
    if (!new) {
        fputs("reverse: out of memory\n", stderr);
        exit(1);
    }
    new->next = next;
    for (size_t i = 0; i < values; i++) new->value[i] = value;
    return new;
}

static struct element *reversed(const struct element *list) {
    struct element *result = NULL;
    for (; list; list = list->next) result = cons(values ? list->value[0] : 0, result);
    return result;
}

/* How many elements it freed. */
static uint64_t drop(struct element *list) {
    uint64_t freed = 0;
    for (; list; freed++) {
        struct element *next = list->next;
        free(list);
        list = next;
    }
    return freed;
}

static void fold(uint64_t *sum, uint64_t value) {
    *sum = *sum * UINT64_C(6364136223846793005) + value + 1;
}

/* The elements' number and, where they have values, a checksum that depends on their order. */
static void check(const struct element *list, uint64_t *length, uint64_t *sum) {
    for (*length = 0; list; list = list->next) {
        ++*length;
        if (values) fold(sum, list->value[0]);
    }
}

static uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-') {
        fprintf(stderr, "reverse: `%s` is no number; usage: reverse LENGTH REVERSALS [BYTES]\n", text);
        exit(2);
    }
    return value;
}

int main(int count, char **arguments) {
    if (count != 3 && count != 4) {
        fputs("usage: reverse LENGTH REVERSALS [BYTES]\n", stderr);
        return 2;
    }
    uint64_t length = number(arguments[1]), reversals = number(arguments[2]);
    uint64_t bytes = count == 4 ? number(arguments[3]) : 40;
    if (bytes < 8 || bytes % 8) {
        fputs("reverse: the bytes of an element are a multiple of 8\n", stderr);
        return 2;
    }
    values = (bytes - sizeof(struct element)) / sizeof(uint64_t);
    struct element *list = NULL;
    for (uint64_t i = 0; i < length; i++) list = cons(i, list);
    uint64_t found = 0, done = 0, sum = 0;
    while (done < reversals) {
        struct element *new = reversed(list);
        /* Each reversal leaves its mark, also on elements without values: its number, and how many it freed. */
        fold(&sum, drop(list) + done++);
        list = new;
        if (done % 2 == 0) check(list, &found, &sum);
    }
    check(list, &found, &sum);
    drop(list);
    printf("%llu elements, %llu reversals, checksum %016llx\n", (unsigned long long)found, (unsigned long long)done,
           (unsigned long long)sum);
    return found != length;
}
