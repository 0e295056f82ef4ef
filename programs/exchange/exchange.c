/* Producers and consumers: in each pair of threads one allocates blocks and the other frees them, so that every free is
 * of another thread's block and memory must find its way back. Blocks travel in batches through a bounded ring with a
 * lock, which is taken once for each batch; the batches are blocks too. A thread that finds the ring empty, or full,
 * sleeps until it is half full: otherwise waking the other thread for every batch would cost more than all of malloc.
 * After the benchmark known as xmalloc-test (Lever and Boreham, "malloc() Performance in a Multithreaded Linux
 * Environment", 2000); here the work is fixed, so that CPU time can be compared.
 *
 * usage: exchange THREADS BLOCKS SMALLEST LARGEST [SEED]
 * THREADS is even, a pair each; every pair exchanges BLOCKS of SMALLEST to LARGEST bytes.
 *
 * A checksum of all blocks that were freed goes to standard output, the same in every run with the same arguments;
 * blocks a second to standard error. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 256, RING = 64 };

struct batch {
    uint64_t count;
    unsigned char *blocks[BATCH];
};

struct pair {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    struct batch *ring[RING];
    uint64_t put, taken; /* batches so far; they lie in ring[taken % RING] up to ring[(put - 1) % RING] */
    uint64_t random;     /* the producer's */
    uint64_t sum, freed; /* the consumer's */
    int damaged;
    pthread_t producer, consumer;
};

static uint64_t blocks, smallest, largest;

static void fail(const char *what, int error) {
    fprintf(stderr, "exchange: %s: %s\n", what, strerror(error));
    exit(1);
}

/* xorshift64*, Vigna 2016 */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static void put(struct pair *pair, struct batch *batch, int last) {
    pthread_mutex_lock(&pair->lock);
    while (pair->put - pair->taken == RING) pthread_cond_wait(&pair->emptied, &pair->lock);
    pair->ring[pair->put++ % RING] = batch;
    if (last || pair->put - pair->taken == RING / 2) pthread_cond_signal(&pair->filled);
    pthread_mutex_unlock(&pair->lock);
}

static struct batch *take(struct pair *pair) {
    pthread_mutex_lock(&pair->lock);
    while (pair->put == pair->taken) pthread_cond_wait(&pair->filled, &pair->lock);
    struct batch **place = &pair->ring[pair->taken++ % RING];
    struct batch *batch = *place;
    *place = NULL;
    if (pair->put - pair->taken == RING / 2) pthread_cond_signal(&pair->emptied);
    pthread_mutex_unlock(&pair->lock);
    return batch;
}

/* The first eight bytes of a block are its size and number, its last byte, if there are more, the number's lowest. */
static unsigned char *new_block(struct pair *pair, uint64_t number) {
    uint64_t bytes = smallest + ((next_random(&pair->random) >> 32) * (largest - smallest + 1) >> 32);
    unsigned char *block = malloc(bytes);
    if (!block) fail("malloc", ENOMEM);
    uint64_t stamp = bytes << 40 | (number & UINT64_C(0xffffffffff));
    memcpy(block, &stamp, sizeof stamp);
    if (bytes > sizeof stamp) block[bytes - 1] = (unsigned char)stamp;
    return block;
}

static void drop_block(struct pair *pair, unsigned char *block) {
    uint64_t stamp;
    memcpy(&stamp, block, sizeof stamp);
    uint64_t bytes = stamp >> 40;
    if (bytes < smallest || bytes > largest || (bytes > sizeof stamp && block[bytes - 1] != (unsigned char)stamp))
        pair->damaged = 1;
    pair->sum = pair->sum * UINT64_C(6364136223846793005) + stamp;
    pair->freed++;
    free(block);
}

static void *produce(void *argument) {
    struct pair *pair = argument;
    for (uint64_t made = 0; made < blocks;) {
        struct batch *batch = malloc(sizeof *batch);
        if (!batch) fail("malloc", ENOMEM);
        for (batch->count = 0; batch->count < BATCH && made < blocks; batch->count++)
            batch->blocks[batch->count] = new_block(pair, made++);
        put(pair, batch, made == blocks);
    }
    return NULL;
}

static void *consume(void *argument) {
    struct pair *pair = argument;
    while (pair->freed < blocks) {
        struct batch *batch = take(pair);
        for (uint64_t i = 0; i < batch->count; i++) drop_block(pair, batch->blocks[i]);
        free(batch);
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*function)(void *), struct pair *pair) {
    int error = pthread_create(thread, NULL, function, pair);
    if (error) fail("pthread_create", error);
}

static void join(pthread_t thread) {
    int error = pthread_join(thread, NULL);
    if (error) fail("pthread_join", error);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-' || errno || value < least || value > most) {
        fprintf(stderr, "exchange: `%s` is no number from %llu to %llu\n", text, (unsigned long long)least,
                (unsigned long long)most);
        exit(2);
    }
    return value;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    if (count != 5 && count != 6) {
        fputs("usage: exchange THREADS BLOCKS SMALLEST LARGEST [SEED]\n", stderr);
        return 2;
    }
    uint64_t threads = number(arguments[1], 2, 1024), pairs = threads / 2;
    if (threads % 2) {
        fputs("exchange: the threads go in pairs: give an even number of them\n", stderr);
        return 2;
    }
    blocks = number(arguments[2], 1, UINT64_C(1) << 40);
    smallest = number(arguments[3], 8, 1 << 20);
    largest = number(arguments[4], smallest, 1 << 20);
    uint64_t seed = count == 6 ? number(arguments[5], 0, UINT32_MAX) : 2000;

    struct pair *all = calloc(pairs, sizeof *all);
    if (!all) fail("calloc", ENOMEM);
    double started = now();
    for (struct pair *pair = all; pair < all + pairs; pair++) {
        pair->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)(pair - all) + 1;
        pthread_mutex_init(&pair->lock, NULL);
        pthread_cond_init(&pair->filled, NULL);
        pthread_cond_init(&pair->emptied, NULL);
        start(&pair->producer, produce, pair);
        start(&pair->consumer, consume, pair);
    }
    uint64_t sum = 0, freed = 0;
    int damaged = 0;
    for (struct pair *pair = all; pair < all + pairs; pair++) {
        join(pair->producer);
        join(pair->consumer);
        sum = sum * 31 + pair->sum;
        freed += pair->freed;
        damaged += pair->damaged;
    }
    double taken = now() - started;
    free(all);
    printf("%llu pairs, %llu blocks, checksum %016llx, %d damaged\n", (unsigned long long)pairs,
           (unsigned long long)freed, (unsigned long long)sum, damaged);
    fprintf(stderr, "exchange: threads=%llu operations=%llu wall_s=%.3f operations_per_s=%.0f\n",
            (unsigned long long)threads, (unsigned long long)freed, taken, (double)freed / taken);
    return damaged != 0 || freed != pairs * blocks;
}
