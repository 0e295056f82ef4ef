/* frees.c: frees that are wrong. The effect is two owners of one block, or a block that is no heap's. */
#include "attack.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#pragma GCC diagnostic ignored "-Wfree-nonheap-object"

enum { SIZE = 96, LARGE = 3 << 20, TRIES = 64 };

/* Whether two of the next blocks are one. */
static int has_two_owners(size_t size) {
    static unsigned char *blocks[TRIES];
    for (int i = 0; i < TRIES; i++) {
        blocks[i] = malloc(hidden(size));
        for (int j = 0; j < i; j++)
            if (blocks[i] && blocks[i] == blocks[j]) return 1;
    }
    return 0;
}

/* Whether one of the next blocks begins within `length` bytes from `from`. */
static int is_given_out(const unsigned char *from, size_t length, size_t size) {
    for (int i = 0; i < TRIES; i++) {
        unsigned char *block = malloc(hidden(size));
        if (block >= from && block < from + length) return 1;
    }
    return 0;
}

CASE(SECURITY, double_free, "a block is freed twice in a row") {
    void *block = taken(SIZE);
    given(block);
    given(block);
    state(has_two_owners(SIZE), SIZE);
}

CASE(SECURITY, double_free_interleaved, "another block is freed between the two frees of one") {
    void *block = taken(SIZE), *other = taken(SIZE);
    given(block);
    given(other);
    given(block);
    state(has_two_owners(SIZE), SIZE);
}

CASE(SECURITY, double_free_delayed, "a thousand blocks are freed between the two frees of one") {
    static void *others[1000];
    void *block = taken(SIZE);
    for (int i = 0; i < 1000; i++)
        others[i] = taken(SIZE);
    given(block);
    for (int i = 0; i < 1000; i++)
        given(others[i]);
    given(block);
    static unsigned char *blocks[2200];
    int twice = 0;
    for (int i = 0; i < 2200; i++) {
        blocks[i] = malloc(hidden(SIZE));
        twice += blocks[i] == block;
    }
    state(twice > 1, SIZE);
}

CASE(SECURITY, double_free_reused, "a block is freed, given out again, and freed by its old name: its new owner loses it") {
    void *block = taken(SIZE), *again = NULL;
    given(block);
    for (int i = 0; i < TRIES && again != block; i++)
        again = malloc(hidden(SIZE));
    if (again != block) {
        state(0, SIZE);
        return;
    }
    given(block);
    state(is_given_out(block, 1, SIZE), SIZE);
}

CASE(SECURITY, double_free_large, "a block of 3 MiB is freed twice in a row") {
    void *block = taken(LARGE);
    given(block);
    given(block);
    state(has_two_owners(LARGE), SIZE);
}

CASE(SECURITY, invalid_free_unaligned, "free of an address one byte after a block's beginning") {
    unsigned char *block = taken(SIZE);
    given(block + 1);
    state(is_given_out(block, SIZE, SIZE), SIZE);
}

CASE(SECURITY, invalid_free_inside, "free of an aligned address inside a block") {
    unsigned char *block = taken(4 * SIZE);
    given(block + 64);
    state(is_given_out(block, 4 * SIZE, SIZE) || is_given_out(block, 4 * SIZE, 4 * SIZE), SIZE);
}

CASE(SECURITY, invalid_free_large_inside, "free of the second page of a block of 3 MiB") {
    unsigned char *block = taken(LARGE);
    given(block + 4096);
    state(is_given_out(block, LARGE, SIZE) || is_given_out(block, LARGE, LARGE / 2), SIZE);
}

CASE(SECURITY, invalid_free_stack, "free of an aligned address on the stack") {
    _Alignas(64) unsigned char local[1024];
    for (size_t i = 0; i < sizeof local; i++)
        ((volatile unsigned char *)local)[i] = 0;
    given(local + 256);
    state(is_given_out(local, sizeof local, SIZE), SIZE);
}

CASE(SECURITY, invalid_free_static, "free of an aligned address in static data") {
    static _Alignas(64) unsigned char object[1024];
    given(object + 256);
    state(is_given_out(object, sizeof object, SIZE), SIZE);
}

/* What glibc takes for a block of its own: the size before it, and one after it that fits. */
CASE(SECURITY, invalid_free_forged, "free of static data with the words before it that glibc's blocks have") {
    static _Alignas(64) size_t object[128];
    object[1] = 0x71;
    object[15] = 0x71;
    given(object + 2);
    state(is_given_out((unsigned char *)object, sizeof object, SIZE), SIZE);
}

CASE(SECURITY, invalid_free_far, "free of an address where nothing is mapped") {
    given((void *)hidden((size_t)0x123456780000));
    state(is_given_out((unsigned char *)0x123456780000, 4096, SIZE), SIZE);
}

CASE(SECURITY, invalid_free_mapped, "free of memory that the program mapped itself") {
    unsigned char *own = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own != MAP_FAILED, "mmap failed");
    given(own + 8192);
    state(is_given_out(own, 1 << 20, SIZE), SIZE);
}

CASE(SECURITY, huge_request, "more bytes are requested than an address can count; a block is given all the same") {
    unsigned char *block = malloc(hidden((size_t)0 - 64));
    state(block != NULL, SIZE);
}
