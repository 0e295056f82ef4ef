/* Learns what a block costs beyond its bytes, from the distance of neighbours.
 *
 * The probe runs in a forked child, so that the heap the game is played on is untouched. */
#define _GNU_SOURCE
#include "adversary.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 64
#define MOST_OVERHEAD 64

/* The smallest distance of two of many blocks of this size, asked for one after another. */
static size_t distance(size_t bytes) {
    uintptr_t at[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        at[i] = (uintptr_t)malloc(bytes);
        if (!at[i]) return SIZE_MAX;
    }
    size_t least = SIZE_MAX;
    for (int i = 0; i < BLOCKS; i++) {
        for (int j = 0; j < BLOCKS; j++) {
            if (at[i] < at[j] && at[j] - at[i] < least) least = at[j] - at[i];
        }
    }
    for (int i = 0; i < BLOCKS; i++) free((void *)at[i]);
    return least;
}

/* The least number of bytes that must be left off so that blocks of one, two and eight units take no more than that
 * of the heap. When nothing up to 64 bytes does it (sizes are rounded to classes that fall elsewhere), none are. */
size_t learn_overhead(size_t unit) {
    size_t *answer = own(1, sizeof *answer);
    size_t *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) die("no memory for the probe");
    pid_t child = fork();
    if (child < 0) die("cannot fork to learn the manager's grain");
    if (child == 0) {
        size_t most = unit - 1 < MOST_OVERHEAD ? unit - 1 : MOST_OVERHEAD;
        for (size_t overhead = 0; overhead <= most; overhead += 8) {
            bool fits = true;
            for (size_t units = 1; units <= 8 && fits; units *= units == 1 ? 2 : 4) {
                fits = distance(units * unit - overhead) <= units * unit;
            }
            if (fits) {
                *shared = overhead;
                break;
            }
        }
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        die("the manager failed in the probe of its grain");
    }
    *answer = *shared;
    return *answer;
}
