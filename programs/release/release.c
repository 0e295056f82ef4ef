/* How long does a program pause when a large structure is dropped? Requests build a binary tree node by node, as many
 * look nodes up; then its root is given up and the next begun. Each request's processor time is taken: what another
 * program does meanwhile does not count (Boehm, "Memory Allocation Myths and Half-Truths", GC myth 5).
 *
 * usage: release NODES ROUNDS
 * Trees of NODES, as many as ROUNDS, 64 nodes made or looked up a request. When it is compiled it is chosen how a tree is given up:
 *   (nothing)         by reference counts, at once: the last pointer frees the whole tree
 *   RELEASE_DEFERRED  by reference counts, some nodes at each later request: lazy freeing, as in Weizenbaum's SLIP (1963).
 *                     (reverse:counted-deferred defers the counting, which is another thing)
 *   RELEASE_GC        not at all: for a collector behind malloc
 * Standard error gets the longest request of a round, in the middle one of the rounds, and the median request, µs of
 * processor time: `release: round_longest_us=1234.5 median_us=6.7`. The longest of all would be what once disturbed it. */
#include <time.h>

#include "../common/arguments.h"

const char *const program = "release";

/* Nodes that a request makes or looks up, and that it frees at most where that is deferred: more than half of them, or
 * what waits would grow, since only every other request makes any. */
enum { MADE = 64, FREED = 40 };

struct node {
    struct node *left, *right;
    uint64_t count, value;
};

static struct node **order; /* the tree under way by number, a parent before its children: node i's are 2i+1, 2i+2 */
static double processor_us(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)) {
        perror("release: clock_gettime");
        exit(1);
    }
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

#ifndef RELEASE_GC

static uint64_t freed;

/* Nodes that nothing points to any more, chained by `right`; their children are still counted. */
static struct node *dead;

static void release(struct node *node) {
    if (node && --node->count == 0) {
        /* Its right child must be released too, and its place is wanted: that is why it waits in `value`. */
        node->value = (uint64_t)(uintptr_t)node->right;
        node->right = dead;
        dead = node;
    }
}

/* Frees so many of them at most, and releases their children. */
static void reclaim(uint64_t most) {
    for (; dead && most; most--) {
        struct node *node = dead;
        dead = node->right;
        release(node->left);
        release((struct node *)(uintptr_t)node->value);
        free(node);
        freed++;
    }
}

#endif

static void give_up(struct node *root) {
#if defined RELEASE_GC
    (void)root;
#elif defined RELEASE_DEFERRED
    release(root);
#else
    release(root);
    reclaim(UINT64_MAX);
#endif
}

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **arguments) {
    if (count != 3) {
        fputs("usage: release NODES ROUNDS\n", stderr);
        return 2;
    }
    uint64_t nodes = number(arguments[1], "NODES", MADE, 1 << 26), rounds = number(arguments[2], "ROUNDS", 1, 1 << 16);
    uint64_t requests = 2 * ((nodes + MADE - 1) / MADE); /* of a round */
    order = must(malloc(nodes * sizeof *order));
    double *took = must(malloc(rounds * requests * sizeof *took));
    /* Touched now: a request is not to wait for the pages of what measures it. */
    for (uint64_t i = 0; i < rounds * requests; i++) took[i] = 0;
    double *longest = must(calloc(rounds, sizeof *longest)); /* of each round */
    uint64_t done = 0, sum = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t made = 0, place = 0;
        for (uint64_t request = 0; request < requests; request++) {
            double begun = processor_us();
#ifdef RELEASE_DEFERRED
            reclaim(FREED);
#endif
            for (int i = 0; i < MADE && request < requests / 2 && made < nodes; i++, made++) {
                struct node *new = must(malloc(sizeof *new));
                *new = (struct node){.count = 1, .value = made};
                order[made] = new;
                if (made) *(made % 2 ? &order[(made - 1) / 2]->left : &order[(made - 1) / 2]->right) = new;
            }
            for (int i = 0; i < MADE && request >= requests / 2; i++) {
                place = (place * UINT64_C(6364136223846793005) + 1442695040888963407u) % nodes;
                sum = sum * 31 + order[place]->value;
            }
            if (request == requests - 1) {
                struct node *root = order[0];
                /* What a collector finds here it would keep. */
                for (uint64_t i = 0; i < nodes; i++) order[i] = NULL;
                /* All that so far is the program's, and no part of giving it up. */
                begun = processor_us();
                give_up(root);
            }
            took[done] = processor_us() - begun;
            if (took[done] > longest[round]) longest[round] = took[done];
            done++;
        }
    }
#ifdef RELEASE_DEFERRED
    reclaim(UINT64_MAX);
#endif
#ifndef RELEASE_GC
    if (freed != nodes * rounds) {
        fputs("release: nodes were lost\n", stderr);
        return 1;
    }
#endif
    qsort(took, done, sizeof *took, by_value);
    qsort(longest, rounds, sizeof *longest, by_value);
    printf("%llu trees of %llu nodes, checksum %016llx\n", (unsigned long long)rounds, (unsigned long long)nodes,
           (unsigned long long)sum);
    fprintf(stderr, "release: round_longest_us=%.1f median_us=%.2f\n", longest[rounds / 2], took[done / 2]);
    return 0;
}
