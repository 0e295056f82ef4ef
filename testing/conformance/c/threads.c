/* threads.c: many threads at once, and blocks that one allocates and another frees. */
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { THREADS = 8, SLOTS = 256 };

static pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    int status = pthread_create(&thread, NULL, body, argument);
    CHECK(status == 0, "pthread_create answered %d", status);
    return thread;
}

static void join(pthread_t thread) {
    int status = pthread_join(thread, NULL);
    CHECK(status == 0, "pthread_join answered %d", status);
}

/* A mailbox: one thread puts blocks in, its neighbour takes them out. */
struct parcel {
    unsigned char *block;
    size_t size;
    uint64_t seed;
};
static struct mailbox {
    struct parcel parcels[SLOTS];
    size_t put, taken;
} mailboxes[THREADS];
static size_t parcels_each;

static void take_all(struct mailbox *box) {
    size_t put = __atomic_load_n(&box->put, __ATOMIC_ACQUIRE);
    for (; box->taken < put; __atomic_store_n(&box->taken, box->taken + 1, __ATOMIC_RELEASE)) {
        struct parcel *parcel = &box->parcels[box->taken % SLOTS];
        check_filled(parcel->block, parcel->size, parcel->seed, "a block from another thread");
        free(parcel->block);
    }
}

static void *sends_on(void *argument) {
    size_t self = (size_t)argument;
    struct mailbox *to = &mailboxes[(self + 1) % THREADS], *from = &mailboxes[self];
    struct rng rng = {self + 1};
    for (size_t i = 0; i < parcels_each; i++) {
        size_t size = 1 + rng_below(&rng, rng_below(&rng, 20) ? 400 : 9000);
        struct parcel *parcel = &to->parcels[to->put % SLOTS];
        while (to->put - __atomic_load_n(&to->taken, __ATOMIC_ACQUIRE) == SLOTS) {
            take_all(from);
            sched_yield();
        }
        parcel->block = i % 4 ? malloc(size) : i % 8 ? calloc(1, size) : memalign(64, size);
        CHECK(parcel->block, "a block of %zu bytes was refused in a thread", size);
        parcel->size = size;
        parcel->seed = i ^ self << 32;
        fill(parcel->block, size, parcel->seed);
        __atomic_store_n(&to->put, to->put + 1, __ATOMIC_RELEASE);
        if (i % 16 == 0)
            take_all(from);
    }
    while (from->taken < parcels_each) {
        take_all(from);
        sched_yield();
    }
    return NULL;
}

CASE(PLAIN, threads_cross_free, "8 threads in a ring, each frees the blocks of its predecessor") {
    pthread_t threads[THREADS];
    parcels_each = effort(20000, 5000);
    for (size_t i = 0; i < THREADS; i++)
        threads[i] = start(sends_on, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        join(threads[i]);
}

static pthread_barrier_t all_here;

static void *churns(void *argument) {
    enum { HELD = 128 };
    struct parcel held[HELD] = {{NULL, 0, 0}};
    struct rng rng = {(uint64_t)(uintptr_t)argument * 31 + 3};
    size_t steps = effort(40000, 10000);
    pthread_barrier_wait(&all_here);
    for (size_t i = 0; i < steps; i++) {
        struct parcel *one = &held[rng_below(&rng, HELD)];
        if (one->block)
            check_filled(one->block, one->size, one->seed, "a block of a thread among 8");
        size_t size = 1 + rng_below(&rng, 300);
        if (one->block && i % 2) {
            free(one->block);
            one->block = NULL;
            continue;
        }
        if (!one->block)
            one->block = malloc(size);
        else
            one->block = realloc(one->block, size);
        CHECK(one->block, "a block of %zu bytes was refused in a thread", size);
        one->size = size;
        one->seed = rng_next(&rng);
        fill(one->block, size, one->seed);
    }
    for (size_t i = 0; i < HELD; i++)
        if (held[i].block) {
            check_filled(held[i].block, held[i].size, held[i].seed, "a block of a thread among 8, at the end");
            free(held[i].block);
        }
    return NULL;
}

CASE(PLAIN, threads_contention, "8 threads allocate, resize and free at once, each block with its own pattern") {
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_here, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        threads[i] = start(churns, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        join(threads[i]);
}

enum { KEPT = 4 };
struct legacy {
    unsigned char *blocks[KEPT];
};

static void *leaves_blocks(void *argument) {
    struct legacy *legacy = argument;
    unsigned char *own[40];
    for (size_t i = 0; i < 40; i++) {
        own[i] = malloc(16 + i * 13);
        CHECK(own[i], "malloc in a thread of many gave null");
        fill(own[i], 16 + i * 13, i);
    }
    for (size_t i = 0; i < 40; i++)
        if (i < KEPT)
            legacy->blocks[i] = own[i];
        else
            free(own[i]);
    return NULL;
}

CASE(PLAIN, threads_many, "thousands of threads start and end; their blocks can be freed by another") {
    enum { AT_ONCE = 20 };
    size_t rounds = effort(150, 30);
    size_t warm = 0;
    for (size_t round = 0; round < rounds; round++) {
        pthread_t threads[AT_ONCE];
        struct legacy legacies[AT_ONCE];
        for (size_t i = 0; i < AT_ONCE; i++)
            threads[i] = start(leaves_blocks, &legacies[i]);
        for (size_t i = 0; i < AT_ONCE; i++)
            join(threads[i]);
        for (size_t i = 0; i < AT_ONCE; i++)
            for (size_t j = 0; j < KEPT; j++) {
                check_filled(legacies[i].blocks[j], 16 + j * 13, j, "a block left by a thread that ended");
                free(legacies[i].blocks[j]);
            }
        if (round == rounds / 3)
            warm = resident_bytes();
    }
    /* 2,000 threads of some 11 KB each in the last two thirds: a heap leaked by each thread would be visible. */
    size_t now = resident_bytes();
    CHECK(now < warm + ((size_t)64 << 20), "resident memory grew by %zu KiB while threads came and went",
          (now - warm) >> 10);
}
