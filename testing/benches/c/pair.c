/* Pairs of malloc and free: the shortest time of a pair over slices of a run, nanoseconds; of several threads that do the
 * same at once, the mean of theirs.
 * usage: pair SLICES PAIRS BYTES [THREADS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 64 };
static long slices, pairs;
static size_t bytes;
static pthread_barrier_t all_are_there;

static double shortest(void) {
    double best = 1e18;
    for (long slice = 0; slice < slices; slice++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (long i = 0; i < pairs; i++) {
            void *volatile block = malloc(bytes);
            free(block);
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
        if (ns / (double)pairs < best) best = ns / (double)pairs;
    }
    return best;
}

static void *thread(void *best) {
    pthread_barrier_wait(&all_are_there);
    *(double *)best = shortest();
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5) return 2;
    slices = atol(argv[1]);
    pairs = atol(argv[2]);
    bytes = (size_t)atol(argv[3]);
    long threads = argc == 5 ? atol(argv[4]) : 1;
    if (threads < 1 || threads > MOST) return 2;
    if (threads == 1) {
        printf("%f\n", shortest());
        return 0;
    }
    pthread_t ids[MOST];
    double best[MOST], sum = 0;
    pthread_barrier_init(&all_are_there, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, thread, &best[i]) != 0) return 1;
    for (long i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum += best[i];
    }
    printf("%f\n", sum / (double)threads);
    return 0;
}
