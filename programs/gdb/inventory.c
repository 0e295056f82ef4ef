/* The program that gdb debugs: a small warehouse of parts that are made of parts. It has what a debugger's printer must
 * handle (nested structures, unions, enumerations, function pointers, linked lists, arrays) and stacks that are deep.
 * It is built without optimisation, so that every variable can be read. This program is not measured. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum material { WOOD, STEEL, GLASS, COPPER };

struct size {
    int width, height, depth;
};

union price {
    int64_t cents;
    struct {
        uint32_t low, high;
    } halves;
};

struct part;

struct use {
    struct part *of;
    int count;
    struct use *next;
};

struct part {
    char name[24];
    enum material material;
    struct size size;
    union price price;
    struct use *uses;
    int64_t (*weigh)(const struct part *);
    struct part *next;
};

/* Types in bulk, as a program of many headers has them: the debugger reads those that it prints. */
#define RECORD(name)                                                                                                   \
    struct name {                                                                                                      \
        struct name *left, *right;                                                                                     \
        union price price;                                                                                             \
        struct size sizes[3];                                                                                          \
        enum { name##_old, name##_new, name##_worn } state;                                                            \
        const char *label;                                                                                             \
    };                                                                                                                 \
    struct name name##_first = { .label = #name };                                                                     \
    int name##_count(const struct name *record, int depth) {                                                           \
        int here = record != NULL ? 1 : 0;                                                                             \
        return here != 0 && depth > 0                                                                                  \
                   ? here + name##_count(record->left, depth - 1) + name##_count(record->right, depth - 1)             \
                   : here;                                                                                             \
    }
#define TEN(name)                                                                                                      \
    RECORD(name##0) RECORD(name##1) RECORD(name##2) RECORD(name##3) RECORD(name##4)                                    \
    RECORD(name##5) RECORD(name##6) RECORD(name##7) RECORD(name##8) RECORD(name##9)
#define HUNDRED(name)                                                                                                  \
    TEN(name##_a) TEN(name##_b) TEN(name##_c) TEN(name##_d) TEN(name##_e)                                              \
    TEN(name##_f) TEN(name##_g) TEN(name##_h) TEN(name##_i) TEN(name##_j)
HUNDRED(box)
HUNDRED(crate)
HUNDRED(rack)

static struct part *parts;
static int made;

static int64_t volume(const struct part *part) {
    return (int64_t)part->size.width * part->size.height * part->size.depth;
}

/* Breakpoints are set here: LEVEL calls of build are on the stack. */
static void built(struct part *part, int level) {
    part->price.cents += level;
    made++;
}

static struct part *build(int kind, int level) {
    struct part *part = calloc(1, sizeof *part);
    if (part == NULL) exit(1);
    snprintf(part->name, sizeof part->name, "part %d of level %d", kind, level);
    part->material = (enum material)(kind % 4);
    part->size = (struct size){ kind + 1, level + 2, kind % 3 + 1 };
    part->price.cents = 100 * kind;
    part->weigh = volume;
    part->next = parts;
    parts = part;
    if (level > 0) {
        struct use *use = calloc(1, sizeof *use);
        if (use == NULL) exit(1);
        use->of = build((kind * 7 + 3) % 31, level - 1);
        use->count = kind % 5 + 1;
        part->uses = use;
    }
    built(part, level);
    return part;
}

static int64_t cost(const struct part *part) {
    int64_t cents = part->price.cents;
    for (const struct use *use = part->uses; use != NULL; use = use->next) cents += use->count * cost(use->of);
    return cents;
}

/* The last breakpoint: where a debuggee that has ended is reported with its process number, the session ends it. */
static void over(int64_t total) {
    printf("%d parts, %lld cents\n", made, (long long)total);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    int64_t total = 0;
    for (int round = 0; round < rounds; round++) {
        struct part *whole = build(round % 31, 24);
        total += cost(whole) % 1000 + whole->weigh(whole);
    }
    over(total);
    return 0;
}
