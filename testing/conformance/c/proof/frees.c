/* frees.c: wrong addresses passed to free and realloc. One message and no harm: the program continues with a consistent
 * heap. The driver counts the messages.
 */
#include "proof.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TIMES = 50 };

static struct kept kept;
static void *volatile words[KEPT];
static char static_bytes[256];

/* Applies only to a manager that promises to ignore wrong addresses. */
static void begin(void) {
    if (!reports_live() || is_layered())
        not_applicable("its behaviour here is undefined");
    keep(&kept, "static data after wrong frees", words, KEPT, 0, 1);
}

static void end(void) {
    for (uint64_t i = 0; i < 3; i++) {
        churn(i, 3000);
        check_whole(&kept);
        check_heap("after wrong frees");
    }
    if (collects())
        check_kept(&kept);
}

CASE(PLAIN, free_foreign, "free of memory that the program mapped") {
    begin();
    char *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < TIMES; i++)
        free(hidden_pointer(mapped + 64 * i));
    end();
}

CASE(PLAIN, free_static, "free of static data") {
    begin();
    for (int i = 0; i < TIMES; i++)
        free(hidden_pointer(static_bytes));
    end();
}

CASE(PLAIN, free_stack, "free of addresses on the stack") {
    begin();
    char here[64];
    for (int i = 0; i < TIMES; i++)
        free(hidden_pointer(here));
    end();
}

CASE(PLAIN, free_nowhere, "free of unmapped addresses: low, high and not canonical") {
    begin();
    static const uint64_t ADDRESSES[] = {8, 16, 4096, UINT64_C(0x7ffffffff000), UINT64_C(0xffffffffff600000),
                                         UINT64_C(0x5555555555555550), UINT64_C(0xfffffffffffffff0)};
    for (size_t i = 0; i < sizeof ADDRESSES / sizeof *ADDRESSES; i++)
        free(hidden_pointer((void *)(uintptr_t)ADDRESSES[i]));
    end();
}

CASE(PLAIN, free_interior, "free of addresses inside of blocks, small and large; the blocks are kept") {
    begin();
    for (int i = 0; i < KEPT; i++)
        for (size_t at = 1; at < kept.size[i]; at = at * 3 + 5)
            free(hidden_pointer((char *)words[i] + at));
    check_whole(&kept);
    end();
}

static void free_twice(size_t size, size_t between) {
    begin();
    for (int i = 0; i < TIMES; i++) {
        void *block = malloc(size);
        free(hidden_pointer(block));
        void *others[64];
        for (size_t j = 0; j < between; j++)
            others[j] = malloc(size * 2 + 64);
        for (size_t j = 0; j < between; j++)
            free(others[j]);
        free(hidden_pointer(block));
    }
    /* No block may be handed out twice. */
    static void *held[512];
    for (int i = 0; i < 512; i++) {
        held[i] = malloc(size);
        memset(held[i], i, size < 64 ? size : 64);
    }
    for (int i = 0; i < 512; i++)
        for (size_t at = 0; at < (size < 64 ? size : 64); at++)
            CHECK(((unsigned char *)held[i])[at] == (unsigned char)i, "a block was handed out twice");
    end();
}

CASE(PLAIN, free_twice_small, "a small block is freed twice in a row") { free_twice(40, 0); }
CASE(PLAIN, free_twice_smallest, "a block of one byte is freed twice in a row") { free_twice(1, 0); }
CASE(PLAIN, free_twice_later, "a small block is freed, others too, then it again") { free_twice(40, 64); }
CASE(PLAIN, free_twice_middle, "a block of 20 kB is freed twice") { free_twice(20000, 10); }
CASE(PLAIN, free_twice_large, "a block of 200 kB is freed twice") { free_twice(200000, 3); }

static void *frees(void *block) {
    free(block);
    return NULL;
}

CASE(PLAIN, free_twice_threads, "a block is freed by two threads, one after the other") {
    begin();
    for (int i = 0; i < TIMES; i++) {
        void *block = malloc(72);
        join_thread(start_thread(frees, hidden_pointer(block)));
        join_thread(start_thread(frees, hidden_pointer(block)));
    }
    end();
}

CASE(PLAIN, realloc_wrong, "realloc of foreign, interior, static and freed addresses gives null and harms nothing") {
    begin();
    char here[64];
    char *freed = malloc(100);
    free(hidden_pointer(freed));
    void *wrong[] = {static_bytes, here, (char *)words[3] + 16, (char *)words[15] + 4096, freed, (void *)16};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (size_t size = 1; size < 100000; size *= 50) {
            /* Where free does nothing, a freed block is still a block. */
            if (wrong[i] == freed && mode() == COLLECT)
                continue;
            void *got = realloc(hidden_pointer(wrong[i]), size);
            CHECK(!got, "realloc of wrong address %zu gave a block", i);
        }
    end();
}

CASE(PLAIN, usable_wrong, "malloc_usable_size of wrong addresses gives a number") {
    begin();
    char here[64];
    void *wrong[] = {static_bytes, here, (char *)words[3] + 16, (void *)16};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        note("%zu", malloc_usable_size(hidden_pointer(wrong[i])));
    end();
}

/* In mode `collect` free does nothing: a block that is freed and still held stays intact. */
CASE(PLAIN, free_ignored, "mode collect: a block that was freed and is still held stays intact") {
    if (mode() != COLLECT)
        not_applicable("free reclaims here");
    keep(&kept, "static data after free in mode collect", words, KEPT, 0, 2);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < KEPT; i++)
            free(words[i]);
        check_kept(&kept);
    }
    for (int i = 0; i < KEPT; i++)
        words[i] = NULL;
    check_gone(&kept, 1);
}
