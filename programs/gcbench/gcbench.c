/* The tree benchmark of Ellis, Kovac and Boehm (GCBench), written from its description: a tree to stretch the heap, a
 * long-lived tree and array, then many short-lived binary trees of each depth, built from the root down and from the
 * leaves up. Every depth allocates about as much as the others, twice the stretch tree either way.
 *
 * usage: gcbench [STRETCH LONG-LIVED ARRAY SHALLOWEST DEEPEST [ROUNDS]]
 * Depths of the stretch tree and the long-lived one (18, 16), doubles in the array (500000), depths of the short-lived
 * trees in steps of two (4, 16), times that all these are made (1): in brackets what is published, and used without
 * arguments.
 *
 * What was built goes to standard output, the same in every run; CPU time, peak RSS, collections and how long they took
 * to standard error, on one line. */
/* RTLD_DEFAULT, before glibc 2.34. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../common/process.h"
#include "allocator.h"

struct node {
    struct node *left, *right;
    int height, mark; /* two ints, as in the original; a leaf has height 0 */
};

static uint64_t nodes; /* made so far */

static struct node *new_node(struct node *left, struct node *right, int height) {
    struct node *node = NEW(sizeof *node);
    if (!node) {
        fputs("gcbench: out of memory\n", stderr);
        exit(1);
    }
    node->left = left;
    node->right = right;
    node->height = height;
    node->mark = height ^ 0x5a;
    nodes++;
    return node;
}

/* Nodes of a whole tree; the root alone has depth 0. */
static uint64_t tree_size(int depth) { return (UINT64_C(1) << (depth + 1)) - 1; }

/* Hangs a whole tree below `root`: a node is there before its children. */
static void populate(struct node *root) {
    if (root->height == 0) return;
    root->left = new_node(NULL, NULL, root->height - 1);
    root->right = new_node(NULL, NULL, root->height - 1);
    populate(root->left);
    populate(root->right);
}

/* A whole tree, children first. */
static struct node *build(int depth) {
    if (depth == 0) return new_node(NULL, NULL, 0);
    struct node *left = build(depth - 1);
    struct node *right = build(depth - 1);
    return new_node(left, right, depth);
}

static void drop(struct node *root) {
    if (!FREES || !root) return;
    drop(root->left);
    drop(root->right);
    DROP(root);
}

/* Nodes of a tree that are as they were made. */
static uint64_t intact(const struct node *root) {
    if (!root) return 0;
    return (root->mark == (root->height ^ 0x5a)) + intact(root->left) + intact(root->right);
}

/* Not inlined: words that the loop leaves in registers and on the stack are dead when it returns. */
static __attribute__((noinline)) void top_down(int depth, uint64_t trees) {
    while (trees--) {
        struct node *root = new_node(NULL, NULL, depth);
        populate(root);
        drop(root);
    }
}

static __attribute__((noinline)) void bottom_up(int depth, uint64_t trees) {
    while (trees--) drop(build(depth));
}

static __attribute__((noinline)) void stretch(int depth) { drop(build(depth)); }

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static void report(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage)) {
        perror("gcbench: getrusage");
        exit(1);
    }
    long long collections = COLLECTIONS();
    char collections_text[24] = "unknown";
    if (collections >= 0) snprintf(collections_text, sizeof collections_text, "%lld", collections);
    double collecting_ms = COLLECTING_MS();
    char collecting_text[24] = "unknown";
    if (collecting_ms >= 0) snprintf(collecting_text, sizeof collecting_text, "%.3f", collecting_ms);
    fprintf(stderr, "gcbench: allocator=%s cpu_s=%.3f peak_rss_kib=%ld collections=%s collecting_ms=%s\n", ALLOCATOR,
            seconds(usage.ru_utime) + seconds(usage.ru_stime), peak_rss_kib(), collections_text, collecting_text);
}

static int number(const char *text, int least, int most) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < least || value > most) {
        fprintf(stderr, "gcbench: `%s` is no number from %d to %d\n", text, least, most);
        exit(2);
    }
    return (int)value;
}

int main(int count, char **arguments) {
    START();
    int stretch_depth = 18, long_lived_depth = 16, elements = 500000, shallowest = 4, deepest = 16, rounds = 1;
    if (count == 6 || count == 7) {
        stretch_depth = number(arguments[1], 0, 26);
        long_lived_depth = number(arguments[2], 0, 26);
        elements = number(arguments[3], 1, 1 << 28);
        shallowest = number(arguments[4], 0, stretch_depth);
        deepest = number(arguments[5], shallowest, stretch_depth);
        if (count == 7) rounds = number(arguments[6], 1, 1 << 20);
    } else if (count != 1) {
        fputs("usage: gcbench [STRETCH LONG-LIVED ARRAY SHALLOWEST DEEPEST [ROUNDS]]\n", stderr);
        return 2;
    }

    stretch(stretch_depth);
    printf("stretch tree of depth %d\n", stretch_depth);

    struct node *long_lived = new_node(NULL, NULL, long_lived_depth);
    populate(long_lived);
    double *array = NEW_ATOMIC((size_t)elements * sizeof *array);
    if (!array) {
        fputs("gcbench: out of memory\n", stderr);
        return 1;
    }
    /* The original fills the first half only; the second is never touched. */
    for (int i = 0; i < elements / 2; i++) array[i] = 1.0 / (i + 1);
    printf("long-lived tree of depth %d and array of %d doubles\n", long_lived_depth, elements);

    for (int round = 0; round < rounds; round++) {
        for (int depth = shallowest; depth <= deepest; depth += 2) {
            uint64_t trees = 2 * tree_size(stretch_depth) / tree_size(depth);
            top_down(depth, trees);
            bottom_up(depth, trees);
            printf("depth %d: %llu trees from the root, as many from the leaves\n", depth, (unsigned long long)trees);
        }
    }

    uint64_t found = intact(long_lived);
    int wrong = 0;
    for (int i = 0; i < elements / 2; i++) wrong += array[i] != 1.0 / (i + 1);
    printf("%llu nodes made; of the long-lived, %llu of %llu nodes and all but %d doubles are intact\n",
           (unsigned long long)nodes, (unsigned long long)found, (unsigned long long)tree_size(long_lived_depth),
           wrong);
    drop(long_lived);
    DROP(array);
    report();
    return found != tree_size(long_lived_depth) || wrong;
}
