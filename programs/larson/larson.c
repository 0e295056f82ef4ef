/* Threads of a server, after Larson and Krishnan, "Memory Allocation for Long-Running Server Applications" (1998): each
 * has an array of blocks of random sizes and replaces blocks at random places; after a round it hands the array to a
 * new thread and ends, so that blocks are mostly freed by another thread than the one that allocated them. The paper
 * counts what is done in a fixed time; here the work is fixed, so that CPU time can be compared.
 *
 * usage: larson THREADS BLOCKS SMALLEST LARGEST ROUNDS REPLACEMENTS [SEED]
 * BLOCKS in each array, of SMALLEST to LARGEST bytes; ROUNDS threads one after another for each array, each with
 * REPLACEMENTS of its own.
 *
 * A checksum of all blocks that were freed goes to standard output, the same in every run with the same arguments;
 * replacements a second to standard error. */
#include <pthread.h>

#include "../common/arguments.h"
#include "../common/process.h"
#include "../common/random.h"
#include "../common/stamped.h"

const char *const program = "larson";

/* The work that goes from thread to thread. Each replacement writes it, so that no two may share a line of the processor's
 * cache: which ones did was up to the manager's address for them, and took more time than malloc and free. */
struct chain {
    unsigned char **blocks;
    uint64_t random, sum;
    uint64_t made; /* blocks allocated so far: a part of each block's stamp */
    uint64_t rounds;
    pthread_t previous; /* the thread that had it before, not joined yet */
    int has_previous, damaged;
    char apart[72];
};

static uint64_t blocks, smallest, largest, rounds, replacements;

static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static uint64_t running; /* chains that have not ended */

static unsigned char *new_block(struct chain *chain) {
    uint64_t bytes = smallest + below_32(&chain->random, largest - smallest + 1);
    return stamped_block(bytes, chain->made++);
}

static void drop_block(struct chain *chain, unsigned char *block) {
    if (!drop_stamped(block, smallest, largest, &chain->sum)) chain->damaged = 1;
}

static void *serve(void *argument) {
    struct chain *chain = argument;
    if (chain->has_previous) {
        int error = pthread_join(chain->previous, NULL);
        if (error) fail_with("pthread_join", error);
    }
    for (uint64_t i = 0; i < replacements; i++) {
        uint64_t place = below_32(&chain->random, blocks);
        drop_block(chain, chain->blocks[place]);
        chain->blocks[place] = new_block(chain);
    }
    chain->previous = pthread_self();
    chain->has_previous = 1;
    if (--chain->rounds) {
        pthread_t successor;
        int error = pthread_create(&successor, NULL, serve, chain);
        if (error) fail_with("pthread_create", error);
    } else {
        pthread_mutex_lock(&ending);
        if (--running == 0) pthread_cond_signal(&ended);
        pthread_mutex_unlock(&ending);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 7 && count != 8) {
        fputs("usage: larson THREADS BLOCKS SMALLEST LARGEST ROUNDS REPLACEMENTS [SEED]\n", stderr);
        return 2;
    }
    uint64_t threads = number(arguments[1], "THREADS", 1, 1024);
    blocks = number(arguments[2], "BLOCKS", 1, UINT32_MAX);
    smallest = number(arguments[3], "SMALLEST", 8, 1 << 20);
    largest = number(arguments[4], "LARGEST", smallest, 1 << 20);
    rounds = number(arguments[5], "ROUNDS", 1, UINT32_MAX);
    replacements = number(arguments[6], "REPLACEMENTS", 1, UINT32_MAX);
    uint64_t seed = count == 8 ? number(arguments[7], "SEED", 0, UINT32_MAX) : 4141;

    struct chain *chains = calloc(threads, sizeof *chains);
    if (!chains) fail_with("calloc", ENOMEM);
    for (struct chain *chain = chains; chain < chains + threads; chain++) {
        chain->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)(chain - chains) + 1;
        chain->rounds = rounds;
        chain->blocks = malloc(blocks * sizeof *chain->blocks);
        if (!chain->blocks) fail_with("malloc", ENOMEM);
        for (uint64_t i = 0; i < blocks; i++) chain->blocks[i] = new_block(chain);
    }

    double start = monotonic_s();
    running = threads;
    for (struct chain *chain = chains; chain < chains + threads; chain++) {
        pthread_t first;
        int error = pthread_create(&first, NULL, serve, chain);
        if (error) fail_with("pthread_create", error);
    }
    pthread_mutex_lock(&ending);
    while (running) pthread_cond_wait(&ended, &ending);
    pthread_mutex_unlock(&ending);
    double taken = monotonic_s() - start;

    uint64_t sum = 0;
    int damaged = 0;
    for (struct chain *chain = chains; chain < chains + threads; chain++) {
        int error = pthread_join(chain->previous, NULL);
        if (error) fail_with("pthread_join", error);
        for (uint64_t i = 0; i < blocks; i++) drop_block(chain, chain->blocks[i]);
        free(chain->blocks);
        sum = sum * 31 + chain->sum;
        damaged += chain->damaged;
    }
    free(chains);
    uint64_t done = threads * rounds * replacements;
    printf("%llu arrays, %llu replacements, checksum %016llx, %d damaged\n", (unsigned long long)threads,
           (unsigned long long)done, (unsigned long long)sum, damaged);
    fprintf(stderr, "larson: threads=%llu operations=%llu wall_s=%.3f operations_per_s=%.0f\n",
            (unsigned long long)threads, (unsigned long long)done, taken, (double)done / taken);
    return damaged != 0;
}
