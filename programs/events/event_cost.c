/* What a mark costs: the time of heaptoll_event_begin and heaptoll_event_end together, with nothing in between. To be
 * run alone and under the events layer.
 *
 * usage: event-cost [ROUNDS]
 *
 * Rounds of 1000 pairs and rounds of the same loop without marks take turns. To standard output goes a line: "pairs N
 * least_ns A median_ns B mean_ns C", in ns a pair: the cheapest round, the middle one and the average (with whatever
 * else the machine did), each less that of the rounds without. */
#include <time.h>

#include "../../include/heaptoll_events.h"
#include "common.h"

const char *const program = "event-cost";

enum { PAIRS = 1000 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The compiler may neither drop the loop nor move the marks out of it. */
#define IS_DONE() __asm__ volatile("" ::: "memory")

static uint64_t marked(void) {
    uint64_t from = now_ns();
    for (uint32_t i = 0; i < PAIRS; i++) {
        heaptoll_event_begin();
        IS_DONE();
        heaptoll_event_end(i);
    }
    return now_ns() - from;
}

static uint64_t bare(void) {
    uint64_t from = now_ns();
    for (uint32_t i = 0; i < PAIRS; i++) IS_DONE();
    return now_ns() - from;
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    if (argc > 2) {
        fprintf(stderr, "usage: event-cost [ROUNDS]\n");
        return 2;
    }
    uint64_t rounds = argc > 1 ? number(argv[1], "ROUNDS", 1, 1000000) : 500;
    double *with = must(calloc(rounds, sizeof *with)), *without = must(calloc(rounds, sizeof *without)), sum = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        without[round] = (double)bare() / PAIRS;
        with[round] = (double)marked() / PAIRS;
        sum += with[round] - without[round];
    }
    qsort(with, rounds, sizeof *with, by_size);
    qsort(without, rounds, sizeof *without, by_size);
    printf("pairs %llu least_ns %.2f median_ns %.2f mean_ns %.2f\n", (unsigned long long)(rounds * PAIRS),
           with[0] - without[0], with[rounds / 2] - without[rounds / 2], sum / (double)rounds);
    return fflush(stdout) == 0 ? 0 : 1;
}
