/* limits.c: the system refuses memory. */
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MEGABYTE = 1 << 20, LIMIT_MEGABYTES = 512 };
static void *blocks[4 * LIMIT_MEGABYTES];
static size_t held;

/* Starts this program again under the limit, so that what a manager reserves when it is loaded is limited too. */
static void limit(int resource, const char *name) {
    if (!getenv("HEAPTOLL_LIMITED")) {
        struct rlimit set;
        getrlimit(resource, &set);
        set.rlim_cur = (rlim_t)LIMIT_MEGABYTES * MEGABYTE;
        CHECK(setrlimit(resource, &set) == 0, "cannot set %s", name);
    }
    again_with("HEAPTOLL_LIMITED", name);
}

static void lift(int resource) {
    struct rlimit set;
    getrlimit(resource, &set);
    set.rlim_cur = set.rlim_max;
    CHECK(setrlimit(resource, &set) == 0, "cannot lift the limit");
}

static void fill_up(const char *name) {
    for (;;) {
        errno = 0;
        unsigned char *block = held % 8 == 7 ? calloc(MEGABYTE, 1) : malloc(MEGABYTE);
        if (!block)
            break;
        CHECK(held < sizeof blocks / sizeof *blocks, "%zu blocks of 1 MiB were given under a %s of %d MiB", held, name,
              LIMIT_MEGABYTES);
        block[0] = block[MEGABYTE - 1] = 7;
        blocks[held++] = block;
    }
    CHECK(errno == ENOMEM, "malloc gave null with errno %d instead of ENOMEM under %s", errno, name);
    note("%zu blocks of 1 MiB under a %s of %d MiB", held, name, LIMIT_MEGABYTES);
    CHECK(held >= LIMIT_MEGABYTES / 8, "only %zu blocks of 1 MiB were given under a %s of %d MiB", held, name,
          LIMIT_MEGABYTES);
}

/* With no megabyte left: every function reports it, and live blocks stay intact. */
static void carry_on(int resource, const char *name) {
    fill_up(name);
    size_t much = (size_t)LIMIT_MEGABYTES * MEGABYTE;
    errno = 0;
    CHECK(!calloc(much, 1) && errno == ENOMEM, "calloc without memory: errno %d", errno);
    errno = 0;
    CHECK(!memalign(4096, much) && errno == ENOMEM, "memalign without memory: errno %d", errno);
    void *mark = &much, *result = mark;
    int status = posix_memalign(&result, 64, much);
    CHECK(status == ENOMEM && result == mark, "posix_memalign without memory answered %d", status);
    errno = 0;
    CHECK(!realloc(blocks[0], much) && errno == ENOMEM, "realloc without memory: errno %d", errno);
    /* Small blocks use up the rest; each request succeeds or fails properly. */
    for (size_t i = 0; i < 200000; i++) {
        errno = 0;
        void *small = malloc(i % 2 ? 4000 : 100);
        if (!small) {
            CHECK(errno == ENOMEM, "malloc of a small block gave null with errno %d", errno);
            break;
        }
        fill(small, 100, 1);
    }
    for (size_t i = 0; i < held; i++) {
        unsigned char *block = blocks[i];
        CHECK(block[0] == 7 && block[MEGABYTE - 1] == 7, "block %zu of %zu was damaged", i, held);
    }
    for (size_t i = 0; i < held; i += 2)
        free(blocks[i]);
    /* After the limit is gone there is memory again, for a manager that never frees too. */
    lift(resource);
    void *again = malloc(MEGABYTE);
    CHECK(again, "malloc still gives null after the limit was lifted");
    fill(again, MEGABYTE, 2);
    for (size_t i = 1; i < held; i += 2) {
        unsigned char *block = blocks[i];
        CHECK(block[0] == 7 && block[MEGABYTE - 1] == 7, "block %zu of %zu was damaged in the end", i, held);
        free(block);
    }
    check_filled(again, MEGABYTE, 2, "a block after memory had run out");
    free(again);
}

CASE(PLAIN, out_of_address_space, "under RLIMIT_AS: null and ENOMEM, blocks stay intact, the program continues") {
    limit(RLIMIT_AS, "RLIMIT_AS");
    carry_on(RLIMIT_AS, "RLIMIT_AS");
}

CASE(PLAIN, out_of_data, "under RLIMIT_DATA: the same") {
    limit(RLIMIT_DATA, "RLIMIT_DATA");
    carry_on(RLIMIT_DATA, "RLIMIT_DATA");
}

CASE(PLAIN, reuse_when_full, "with the limit reached, a freed block can be reused") {
    limit(RLIMIT_AS, "RLIMIT_AS");
    fill_up("RLIMIT_AS");
    for (size_t i = 0; i < 20; i++) {
        free(blocks[i]);
        blocks[i] = malloc(MEGABYTE);
        CHECK(blocks[i], "a block of 1 MiB was freed, and malloc gives null for another (round %zu)", i);
    }
}
