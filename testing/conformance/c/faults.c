/* faults.c: every k-th request for memory from the system fails (HEAPTOLL_FAIL_EVERY, read by heaptoll's own
 * managers). The program sees null and ENOMEM, and everything it holds stays whole. */
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { HELD = 400, LARGE = 48 };
static struct {
    unsigned char *block;
    size_t size;
    uint64_t seed;
} held[HELD];
static size_t given, refused;

static void *judged(void *block, const char *what, size_t size) {
    int error = errno;
    if (block)
        given++;
    else {
        refused++;
        CHECK(error == ENOMEM, "%s of %zu bytes gave null with errno %d instead of ENOMEM", what, size, error);
    }
    return block;
}

static void one_step(struct rng *rng, size_t i) {
    size_t at = rng_below(rng, HELD), what = rng_below(rng, 8);
    size_t size = 1 + rng_below(rng, (size_t)16 << rng_below(rng, 15));
    if (held[at].block)
        check_filled(held[at].block, held[at].size, held[at].seed, "a block while memory is refused");
    errno = 0;
    if (held[at].block && what == 0) {
        void *moved = judged(realloc(held[at].block, size), "realloc", size);
        if (!moved) {
            check_filled(held[at].block, held[at].size, held[at].seed, "a block after a refused realloc");
            return;
        }
        held[at].block = moved;
    } else {
        free(held[at].block);
        errno = 0;
        if (what == 1)
            held[at].block = judged(calloc(1, size), "calloc", size);
        else if (what == 2)
            held[at].block = judged(memalign(256, size), "memalign", size);
        else if (what == 3) {
            void *mark = &at, *result = mark;
            int status = posix_memalign(&result, 1024, size);
            CHECK(status == 0 || (status == ENOMEM && result == mark), "posix_memalign answered %d", status);
            held[at].block = status ? NULL : result;
            errno = status;
            judged(held[at].block, "posix_memalign", size);
        } else
            held[at].block = judged(malloc(size), "malloc", size);
        if (what == 1 && held[at].block)
            for (size_t byte = 0; byte < size; byte++)
                CHECK(held[at].block[byte] == 0, "byte %zu of a calloc of %zu is not zero", byte, size);
    }
    held[at].size = size;
    held[at].seed = i;
    if (held[at].block)
        fill(held[at].block, size, i);
}

static void under_faults(unsigned every) {
    char text[16];
    snprintf(text, sizeof text, "%u", every);
    again_with("HEAPTOLL_FAIL_EVERY", text);
    struct rng rng = {every + 100};
    size_t steps = effort(12000, 2500);
    for (size_t i = 0; i < steps; i++) {
        one_step(&rng, i);
        if (i % 500 == 0)
            check_heap("while memory is refused");
    }
    /* Blocks that surely need memory from the system, all held. */
    static void *large[LARGE];
    size_t served = 0;
    for (size_t i = 0; i < LARGE; i++) {
        size_t size = (size_t)3 << 20;
        errno = 0;
        large[i] = judged(malloc(size), "malloc", size);
        if (large[i]) {
            served++;
            fill(large[i], 4096, i);
        }
    }
    check_heap("after large blocks while memory is refused");
    for (size_t i = 0; i < LARGE; i++)
        if (large[i])
            check_filled(large[i], 4096, i, "a large block while memory is refused");
    CHECK(every > LARGE / 4 || refused > 0, "nothing was ever refused: is HEAPTOLL_FAIL_EVERY read?");
    CHECK(every > 1 || served == 0, "%zu large blocks were given though every request for memory fails", served);
    CHECK(every == 1 || served > 0, "no large block was ever given, though only every %uth request fails", every);
    note("%zu given, %zu refused", given, refused);
    for (size_t i = 0; i < LARGE; i++)
        free(large[i]);
    for (size_t at = 0; at < HELD; at++)
        if (held[at].block) {
            check_filled(held[at].block, held[at].size, held[at].seed, "a block in the end");
            free(held[at].block);
        }
}

CASE(CONTROL, fault_every_1, "every request for memory from the system fails") { under_faults(1); }
CASE(CONTROL, fault_every_2, "every 2nd request for memory from the system fails") { under_faults(2); }
CASE(CONTROL, fault_every_3, "every 3rd request for memory from the system fails") { under_faults(3); }
CASE(CONTROL, fault_every_7, "every 7th request for memory from the system fails") { under_faults(7); }
CASE(CONTROL, fault_every_50, "every 50th request for memory from the system fails") { under_faults(50); }

static void *churns(void *argument) {
    struct rng rng = {(uint64_t)(uintptr_t)argument + 1};
    unsigned char *own[64] = {NULL};
    size_t sizes[64];
    for (size_t i = 0; i < 4000; i++) {
        size_t at = rng_below(&rng, 64);
        if (own[at])
            check_filled(own[at], sizes[at], at, "a block of a thread while memory is refused");
        free(own[at]);
        /* Some that surely need memory from the system. */
        sizes[at] = i % 400 ? 1 + rng_below(&rng, (size_t)16 << rng_below(&rng, 14)) : (size_t)2 << 20;
        errno = 0;
        own[at] = malloc(sizes[at]);
        CHECK(own[at] || errno == ENOMEM, "malloc gave null with errno %d in a thread", errno);
        __atomic_fetch_add(own[at] ? &given : &refused, 1, __ATOMIC_RELAXED);
        if (own[at])
            fill(own[at], sizes[at], at);
    }
    return NULL;
}

CASE(CONTROL, fault_threads, "every 3rd request fails while 4 threads allocate") {
    again_with("HEAPTOLL_FAIL_EVERY", "3");
    pthread_t threads[4];
    int running[4];
    for (size_t i = 0; i < 4; i++)
        running[i] = pthread_create(&threads[i], NULL, churns, (void *)i) == 0; /* It may lack memory too. */
    for (size_t i = 0; i < 4; i++)
        if (running[i])
            pthread_join(threads[i], NULL);
    /* The number of a manager's requests is not judged. */
    CHECK(given > 0, "no block was given, though only every 3rd request fails");
    note("%zu given, %zu refused", given, refused);
}
