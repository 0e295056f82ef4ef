/* Pairs of malloc and free: the shortest time of a pair over slices of a run, nanoseconds.
 * usage: pair SLICES PAIRS BYTES */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long slices = atol(argv[1]), pairs = atol(argv[2]);
    size_t bytes = (size_t)atol(argv[3]);
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
    printf("%f\n", best);
    return 0;
}
