/* freed.c: memory that was freed is read, written, or given out again with what was in it. */
#include "attack.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 96, LARGE = 3 << 20, TRIES = 64, LINKS = 32 };

CASE(SECURITY, read_after_free, "a secret is read in a freed block, past the words that a free list may use") {
    unsigned char *block = taken(SIZE);
    given(block);
    state(marked(hidden_pointer(block), LINKS, SIZE) > 0, SIZE);
}

CASE(SECURITY, read_after_free_large, "a secret is read in a freed block of 3 MiB") {
    unsigned char *block = taken(LARGE);
    given(block);
    state(marked(hidden_pointer(block), LINKS, LARGE) > 0, SIZE);
}

CASE(SECURITY, write_after_free, "what is written to a freed block is found in a block given out later") {
    unsigned char *block = taken(SIZE), *next = NULL;
    given(block);
    for (int i = LINKS; i < SIZE; i++)
        ((volatile unsigned char *)hidden_pointer(block))[i] = MARK;
    int found = 0;
    for (int i = 0; i < TRIES && !found; i++) {
        next = malloc(hidden(SIZE));
        found = next && marked(next, LINKS, SIZE) == SIZE - LINKS;
    }
    state(found, SIZE);
}

CASE(SECURITY, write_after_reuse, "what is written by a freed block's old name changes its new owner's data") {
    unsigned char *block = taken(SIZE);
    given(block);
    unsigned char *blocks[TRIES];
    for (int i = 0; i < TRIES; i++) {
        blocks[i] = taken(SIZE);
    }
    for (int i = 0; i < SIZE; i++)
        ((volatile unsigned char *)hidden_pointer(block))[i] = 0x11;
    int changed = 0;
    for (int i = 0; i < TRIES; i++)
        changed |= marked(blocks[i], 0, SIZE) < SIZE;
    state(changed, SIZE);
}

/* The first words of a freed block are where most managers keep their list. */
CASE(SECURITY, free_list_forged, "an address written to the first word of freed blocks is given out as a block") {
    static _Alignas(64) unsigned char target[1024];
    void *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = taken(SIZE);
    for (int i = 0; i < 8; i++)
        given(blocks[i]);
    for (int i = 0; i < 8; i++)
        *(void *volatile *)hidden_pointer(blocks[i]) = target + 256;
    int given_out = 0;
    for (int i = 0; i < TRIES && !given_out; i++) {
        unsigned char *block = malloc(hidden(SIZE));
        given_out = block >= target && block < target + sizeof target;
    }
    state(given_out, SIZE);
}

CASE(SECURITY, reuse_at_once, "the block freed last is the one given out next") {
    void *block = taken(SIZE);
    given(block);
    state(malloc(hidden(SIZE)) == block, SIZE);
}

CASE(SECURITY, reuse_soon, "a freed block is given out again within 64 requests of its size") {
    void *block = taken(SIZE);
    given(block);
    int found = 0;
    for (int i = 0; i < TRIES; i++)
        found |= malloc(hidden(SIZE)) == block;
    state(found, SIZE);
}

CASE(SECURITY, reuse_after_realloc, "the old place of a block that grew is given out within 64 requests") {
    void *block = taken(SIZE), *after = taken(SIZE);
    void *grown = realloc(hidden_pointer(block), hidden(SIZE * 64));
    int found = 0;
    for (int i = 0; i < TRIES && grown != block; i++)
        found |= malloc(hidden(SIZE)) == block;
    given(after);
    state(found, SIZE);
}

/* Whether a block of malloc, of which nothing is written, has what its former owner left. */
static int has_secret(size_t size) {
    for (int i = 0; i < TRIES; i++) {
        unsigned char *block = malloc(hidden(size));
        if (block && marked(block, LINKS, size) > 8) return 1;
    }
    return 0;
}

CASE(SECURITY, uninitialised_read, "a block that is given out has a former owner's secret in it") {
    void *blocks[TRIES];
    for (int i = 0; i < TRIES; i++)
        blocks[i] = taken(SIZE);
    for (int i = 0; i < TRIES; i++)
        given(blocks[i]);
    state(has_secret(SIZE), SIZE);
}

CASE(SECURITY, uninitialised_read_large, "a block of 3 MiB that is given out has a former owner's secret in it") {
    void *block = taken(LARGE);
    given(block);
    unsigned char *next = malloc(hidden(LARGE));
    state(next && marked(next, LINKS, LARGE) > 8, SIZE);
}

CASE(SECURITY, executable_heap, "the heap's memory may be executed") {
    uintptr_t block = (uintptr_t)taken(SIZE), from, to;
    char kind[5], line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps, "cannot read /proc/self/maps");
    int found = 0;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &from, &to, kind) == 3 && from <= block && block < to)
            found = kind[2] == 'x';
    fclose(maps);
    state(found, SIZE);
}
