/* What per-class free lists keep (Boehm, "Memory Allocation Myths and Half-Truths", allocation myth 3): memory of a class
 * that needs it no more, and, under a collector, what the elements on them still point to.
 *
 * usage: lists phases KIB     eight classes, one after the other: each has KIB of objects alive, then none
 *        lists pointers KIB   objects that each point to a block, KIB in all, are given up; then KIB of another kind are
 *                             made
 * With LISTS_CUSTOM objects of a class come from a free list of its own and go back to it; without, from malloc and to
 * free. Blocks are of malloc always. */
#include "../common/checked.h"

const char *const program = "lists";

struct object {
    struct object *next; /* alive: the object made before it; on a free list: the one freed before it */
    void *block;
};

/* Bytes of the objects of each class. */
static const size_t classes[] = {48, 80, 112, 144, 176, 208, 240, 272};
enum { CLASSES = sizeof classes / sizeof *classes, BLOCK = 512, OTHER = 480 };

static struct object *alive; /* here, so that a collector finds it */

#ifdef LISTS_CUSTOM

static struct object *spare[CLASSES];

static struct object *take(size_t class) {
    if (!spare[class]) {
        char *chunk = must(malloc(32 * classes[class]));
        for (int i = 0; i < 32; i++) {
            struct object *object = (struct object *)(chunk + i * classes[class]);
            object->next = spare[class];
            object->block = NULL;
            spare[class] = object;
        }
    }
    struct object *object = spare[class];
    spare[class] = object->next;
    return object;
}

/* The rest of the object stays as it was: that is how such lists are written. */
static void give(size_t class, struct object *object) {
    object->next = spare[class];
    spare[class] = object;
}

#else

static struct object *take(size_t class) { return must(malloc(classes[class])); }

static void give(size_t class, struct object *object) {
    (void)class;
    free(object);
}

#endif

static void make(size_t class, uint64_t number, size_t block_bytes) {
    while (number--) {
        struct object *object = take(class);
        memset(object, 0, classes[class]);
        object->next = alive;
        if (block_bytes) object->block = memset(must(malloc(block_bytes)), 1, block_bytes);
        alive = object;
    }
}

static uint64_t give_up(size_t class) {
    uint64_t given = 0;
    while (alive) {
        struct object *next = alive->next;
        free(alive->block);
        give(class, alive);
        alive = next;
        given++;
    }
    return given;
}

int main(int count, char **arguments) {
    char *end = NULL;
    uint64_t kib = count == 3 ? strtoull(arguments[2], &end, 10) : 0;
    if (kib == 0 || *end || kib > 1 << 22) {
        fputs("usage: lists phases|pointers KIB\n", stderr);
        return 2;
    }
    uint64_t given = 0;
    if (strcmp(arguments[1], "phases") == 0) {
        for (size_t class = 0; class < CLASSES; class++) {
            make(class, kib * 1024 / classes[class], 0);
            given += give_up(class);
        }
    } else if (strcmp(arguments[1], "pointers") == 0) {
        make(0, kib * 1024 / (BLOCK + classes[0]), BLOCK);
        given += give_up(0);
        for (uint64_t i = 0, number = kib * 1024 / OTHER; i < number; i++) {
            struct object *object = memset(must(malloc(OTHER)), 0, OTHER);
            object->next = alive;
            alive = object;
        }
        while (alive) {
            struct object *next = alive->next;
            free(alive);
            alive = next;
            given++;
        }
    } else {
        fputs("usage: lists phases|pointers KIB\n", stderr);
        return 2;
    }
    printf("%llu objects given up\n", (unsigned long long)given);
    return 0;
}
