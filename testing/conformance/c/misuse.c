/* misuse.c: defects of the program that a manager may detect. None is judged; what happens is recorded.
 *
 * Each case commits its defect, prints "past the defect" to standard output, and then uses the heap. A manager that
 * then returns a block twice, or damages one, is detected: status 3. */
#include "check.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wfree-nonheap-object"

enum { HELD = 300 };

static void corrupted(const char *what) {
    note("%s", what);
    _exit(3);
}

/* Blocks of the size in question and of others, all live: none may be returned twice or change. */
static void aftermath(size_t size) {
    static unsigned char *blocks[HELD];
    static size_t sizes[HELD];
    static const char past[] = "past the defect\n";
    if (write(STDOUT_FILENO, past, sizeof past - 1) < 0)
        _exit(4);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < HELD; i++) {
            sizes[i] = i % 3 ? size : 8 + i * 7;
            blocks[i] = malloc(sizes[i]);
            if (!blocks[i])
                corrupted("malloc gave null");
            for (size_t j = 0; j < i; j++)
                if (blocks[j] == blocks[i])
                    corrupted("a block was handed out twice");
            fill(blocks[i], sizes[i], i);
        }
        for (size_t i = 0; i < HELD; i++)
            if (damage(blocks[i], sizes[i], i) >= 0)
                corrupted("two blocks overlap");
        for (size_t i = 0; i < HELD; i++)
            free(blocks[(i * 7) % HELD]);
    }
}

static void *some(size_t size) {
    void *block = malloc(size);
    CHECK(block, "malloc(%zu) gave null", size);
    fill(block, size, 1);
    return block;
}

static void release(void *block) { free(hidden_pointer(block)); }

CASE(MISUSE, double_free, "a block is freed twice in a row") {
    void *before = some(100), *block = some(100), *after = some(100);
    release(block);
    release(block);
    aftermath(100);
    release(before);
    release(after);
}

CASE(MISUSE, double_free_large, "a block of 1 MB is freed twice in a row") {
    void *block = some(1000000), *after = some(1000000);
    release(block);
    release(block);
    aftermath(100000);
    release(after);
}

CASE(MISUSE, double_free_later, "a block is freed, others too, then it again") {
    void *blocks[40];
    for (int i = 0; i < 40; i++)
        blocks[i] = some(100);
    for (int i = 0; i < 20; i++)
        release(blocks[i]);
    release(blocks[7]);
    aftermath(100);
}

/* Indistinguishable from a correct free for any manager without colours or quarantine. */
CASE(MISUSE, double_free_reused, "a block is freed, reused by malloc, and freed by its old name") {
    void *old = some(100);
    release(old);
    void *reused = NULL;
    for (int i = 0; i < 100 && reused != old; i++)
        reused = some(100);
    note("the block was %sreused", reused == old ? "" : "not ");
    fill(reused, 100, 77);
    release(old);
    aftermath(100);
    if (damage(reused, 100, 77) >= 0)
        corrupted("a block in use was handed out to another");
}

CASE(MISUSE, free_stack, "free of an address on the stack") {
    _Alignas(16) unsigned char local[512];
    fill(local, sizeof local, 1);
    release(local + 128);
    aftermath(100);
    if (local[0] == 1)
        note("unlikely");
}

CASE(MISUSE, free_static, "free of an address in static data") {
    static _Alignas(16) unsigned char object[512];
    release(object + 128);
    aftermath(100);
}

CASE(MISUSE, free_mapped, "free of an address that the program mapped itself") {
    unsigned char *own = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own != MAP_FAILED, "mmap failed");
    release(own + 4096);
    aftermath(100);
}

CASE(MISUSE, free_middle, "free of an address in the middle of a block") {
    unsigned char *block = some(400), *after = some(400);
    release(block + 160);
    aftermath(100);
    release(after);
}

CASE(MISUSE, free_misaligned, "free of an address 8 bytes after a block's beginning") {
    unsigned char *block = some(400);
    release(block + 8);
    aftermath(100);
}

CASE(MISUSE, free_8, "free of address 8") {
    release((void *)hidden(8));
    aftermath(100);
}

CASE(MISUSE, free_far, "free of an address where nothing is mapped") {
    release((void *)hidden((size_t)0x123456789000));
    aftermath(100);
}

/* The word after the usable bytes of a block: the next block's header, a boundary tag, or its data. */
CASE(MISUSE, overrun, "a word is written after a block, then it and the next block are freed") {
    unsigned char *blocks[6];
    for (int i = 0; i < 6; i++)
        blocks[i] = some(104);
    unsigned char *end = blocks[2] + malloc_usable_size(blocks[2]);
    for (int i = 0; i < 8; i++)
        ((volatile unsigned char *)end)[i] = 0x41;
    release(blocks[2]);
    release(blocks[3]);
    aftermath(104);
}

CASE(MISUSE, underrun, "a word is written before a block, then it is freed") {
    unsigned char *blocks[6];
    for (int i = 0; i < 6; i++)
        blocks[i] = some(104);
    for (int i = 1; i <= 8; i++)
        ((volatile unsigned char *)hidden_pointer(blocks[2]))[-i] = 0x41;
    release(blocks[2]);
    release(blocks[1]);
    aftermath(104);
}

CASE(MISUSE, use_after_free, "the first two words of a freed block are written, then blocks are allocated") {
    unsigned char *block = some(100), *after = some(100);
    release(block);
    for (int i = 0; i < 16; i++)
        ((volatile unsigned char *)hidden_pointer(block))[i] = 0x41;
    aftermath(100);
    release(after);
}
