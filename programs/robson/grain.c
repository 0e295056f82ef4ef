/* Measures the overhead of a block, from the distance of adjacent blocks.
 *
 * Each probe runs in a forked child of its own: on a heap that no other probe has left holes in, and without touching
 * the heap that the game is played on. */
#define _GNU_SOURCE
#include "adversary.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 64
#define MOST_OVERHEAD 64

/* The smallest distance of two of many blocks of this size, requested one after another. */
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
    return least;
}

void in_child(void (*probe)(void *answer, size_t argument), void *answer, size_t argument) {
    pid_t child = fork();
    if (child < 0) die("cannot fork to probe the manager");
    if (child == 0) {
        probe(answer, argument);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        die("the manager failed in a probe");
    }
}

void *shared(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("no memory for a probe's answer");
    return memory;
}

static void probe(void *answer, size_t bytes) { *(size_t *)answer = distance(bytes); }

/* The least number of bytes that must be left off so that blocks of one, two and eight units take no more than that
 * of the heap. When nothing up to 64 bytes does it (sizes are rounded to classes that fall elsewhere), none are. */
size_t learn_overhead(size_t unit) {
    size_t *answer = shared(sizeof *answer);
    size_t most = unit - 1 < MOST_OVERHEAD ? unit - 1 : MOST_OVERHEAD;
    for (size_t overhead = 0; overhead <= most; overhead += 8) {
        bool fits = true;
        for (size_t units = 1; units <= 8 && fits; units *= units == 1 ? 2 : 4) {
            in_child(probe, answer, units * unit - overhead);
            fits = *answer <= units * unit;
        }
        if (fits) return overhead;
    }
    return 0;
}
