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
#include <pthread.h>

#include "../common/arguments.h"
#include "../common/process.h"
#include "../common/random.h"
#include "../common/stamped.h"

const char *const program = "exchange";

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

static unsigned char *new_block(struct pair *pair, uint64_t block_number) {
    uint64_t bytes = smallest + below_32(&pair->random, largest - smallest + 1);
    return stamped_block(bytes, block_number);
}

static void drop_block(struct pair *pair, unsigned char *block) {
    if (!drop_stamped(block, smallest, largest, &pair->sum)) pair->damaged = 1;
    pair->freed++;
}

static void *produce(void *argument) {
    struct pair *pair = argument;
    for (uint64_t made = 0; made < blocks;) {
        struct batch *batch = malloc(sizeof *batch);
        if (!batch) fail_with("malloc", ENOMEM);
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
    if (error) fail_with("pthread_create", error);
}

static void join(pthread_t thread) {
    int error = pthread_join(thread, NULL);
    if (error) fail_with("pthread_join", error);
}

int main(int count, char **arguments) {
    if (count != 5 && count != 6) {
        fputs("usage: exchange THREADS BLOCKS SMALLEST LARGEST [SEED]\n", stderr);
        return 2;
    }
    uint64_t threads = number(arguments[1], "THREADS", 2, 1024), pairs = threads / 2;
    if (threads % 2) {
        fputs("exchange: the threads go in pairs: give an even number of them\n", stderr);
        return 2;
    }
    blocks = number(arguments[2], "BLOCKS", 1, UINT64_C(1) << 40);
    smallest = number(arguments[3], "SMALLEST", 8, 1 << 20);
    largest = number(arguments[4], "LARGEST", smallest, 1 << 20);
    uint64_t seed = count == 6 ? number(arguments[5], "SEED", 0, UINT32_MAX) : 2000;

    struct pair *all = calloc(pairs, sizeof *all);
    if (!all) fail_with("calloc", ENOMEM);
    double started = monotonic_s();
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
    double taken = monotonic_s() - started;
    free(all);
    printf("%llu pairs, %llu blocks, checksum %016llx, %d damaged\n", (unsigned long long)pairs,
           (unsigned long long)freed, (unsigned long long)sum, damaged);
    fprintf(stderr, "exchange: threads=%llu operations=%llu wall_s=%.3f operations_per_s=%.0f\n",
            (unsigned long long)threads, (unsigned long long)freed, taken, (double)freed / taken);
    return damaged != 0 || freed != pairs * blocks;
}
