/* blocks.c: blocks are allocated, resized and freed; wrong calls; counters. */
#include <errno.h>
#include <limits.h>

#include "check.h"

#define TOO_MUCH ((size_t)PTRDIFF_MAX + 1)

static int filled(const unsigned char *block, size_t bytes, unsigned char with) {
    for (size_t at = 0; at < bytes; at++)
        if (block[at] != with) return 0;
    return 1;
}

void case_blocks(void) {
    static const size_t sizes[] = {0, 1, 16, 17, 100, 1024, 1025, 32768, 32769, 100000, 3 << 20};
    errno = 99;
    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        size_t bytes = sizes[at];
        unsigned char *plain = tithe_malloc(bytes), *atomic = tithe_malloc_atomic(bytes), *zeroed = tithe_calloc(1, bytes);
        CHECK(plain && atomic && zeroed && plain != atomic && atomic != zeroed);
        CHECK((uintptr_t)plain % 16 == 0 && (uintptr_t)atomic % 16 == 0 && (uintptr_t)zeroed % 16 == 0);
        CHECK(tithe_usable_size(plain) >= bytes && tithe_usable_size(atomic) >= bytes);
        CHECK(filled(zeroed, bytes, 0));
        memset(plain, 1, tithe_usable_size(plain));
        memset(atomic, 2, tithe_usable_size(atomic));
        CHECK(filled(zeroed, bytes, 0));
        plain = tithe_realloc(plain, bytes + 5000);
        CHECK(plain && filled(plain, bytes, 1));
        plain = tithe_realloc(plain, bytes / 2 + 1);
        CHECK(plain && filled(plain, bytes / 2, 1));
        tithe_free(plain);
        tithe_free(atomic);
        tithe_free(zeroed);
        zeroed = tithe_calloc(bytes, 3);
        CHECK(zeroed && filled(zeroed, 3 * bytes, 0));
        tithe_free(zeroed);
    }
    tithe_free(NULL);
    CHECK(tithe_usable_size(NULL) == 0);
    void *block = tithe_realloc(NULL, 40);
    CHECK(block && tithe_usable_size(block) >= 40);
    CHECK(tithe_realloc(block, 0) == NULL);
    CHECK(errno == 99);
}

/* The Rust test checks the messages on standard error. */
void case_misuse(void) {
    errno = 0;
    volatile size_t too_much = TOO_MUCH;
    CHECK(tithe_malloc(too_much) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(tithe_malloc_atomic(too_much) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(tithe_malloc_atomic(SIZE_MAX) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(tithe_calloc(too_much, 2) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(tithe_calloc(3, SIZE_MAX / 2) == NULL && errno == ENOMEM);
    unsigned char *block = tithe_malloc(100);
    memset(block, 7, 100);
    errno = 0;
    CHECK(tithe_realloc(block, too_much) == NULL && errno == ENOMEM);
    CHECK(filled(block, 100, 7));
    errno = 99;
    static char foreign[64];
    tithe_free(foreign);
    tithe_free(foreign + 16);
    tithe_free(block + 16);
    tithe_free(block);
    tithe_free(block);
    tithe_free(block);
    CHECK(errno == 99);
    CHECK(tithe_usable_size(foreign) == 0);
    unsigned char *one = tithe_malloc(100), *other = tithe_malloc(100);
    CHECK(one && other && one != other);
}

void case_stats(void) {
    struct tithe_stats stats = {.size = 0};
    errno = 99;
    CHECK(tithe_stats(NULL) == EINVAL);
    CHECK(tithe_stats(&stats) == EINVAL);
    stats.size = sizeof stats - 1;
    CHECK(tithe_stats(&stats) == EINVAL);
    stats.size = UINT64_MAX;
    CHECK(tithe_stats(&stats) == EINVAL);
    stats.size = sizeof stats;
    CHECK(tithe_stats(&stats) == 0 && stats.size == sizeof stats && stats.collections == 0);

    /* A program of a later version: fields unknown to this library are zero. */
    struct {
        struct tithe_stats known;
        uint64_t later[4];
        uint64_t not_its_own;
    } longer;
    memset(&longer, 0xff, sizeof longer);
    longer.known.size = sizeof longer - sizeof longer.not_its_own;
    CHECK(tithe_stats(&longer.known) == 0);
    CHECK(longer.later[0] == 0 && longer.later[3] == 0 && longer.not_its_own == UINT64_MAX);

    void *volatile kept = tithe_malloc(1 << 20);
    make_several(1000, 0);
    struct tithe_stats before = {.size = sizeof before};
    CHECK(tithe_stats(&before) == 0);
    CHECK(before.allocated_bytes >= stats.allocated_bytes + (1 << 20) + SEVERAL * 1000);
    CHECK(before.live_bytes >= stats.live_bytes + (1 << 20));
    CHECK(before.heap_bytes >= before.live_bytes && before.heap_high_bytes >= before.heap_bytes);
    CHECK(tithe_collect() == 0);
    struct tithe_stats after = {.size = sizeof after};
    CHECK(tithe_stats(&after) == 0);
    CHECK(after.collections == 1 && after.abandoned == 0);
    CHECK(after.pause_total_ns > 0 && after.pause_max_ns == after.pause_total_ns);
    CHECK(after.collected_bytes >= NEARLY_ALL * 1000 && after.live_bytes <= before.live_bytes - NEARLY_ALL * 1000);
    CHECK(after.live_bytes >= 1 << 20 && after.allocated_bytes >= before.allocated_bytes);
    CHECK(after.heap_high_bytes >= before.heap_high_bytes && after.blacklisted_bytes <= after.heap_high_bytes);
    tithe_free(kept);
    CHECK(tithe_stats(&stats) == 0);
    CHECK(stats.live_bytes <= after.live_bytes - (frees() ? 1 << 20 : 0));
    CHECK(errno == 99);
}
