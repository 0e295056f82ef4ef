/* bounds.c: writes past the ends of a block. What is written lies past the usable bytes, of which a program may use all.
 * The effect is that the write and the free after it both pass: an attacker has then changed what another owns. */
#include "attack.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 104, LARGE = 3 << 20 };

/* Six blocks in a row, of which the third is written around; all are freed. */
static void around(size_t size, ptrdiff_t from, size_t length) {
    unsigned char *blocks[6];
    for (int i = 0; i < 6; i++)
        blocks[i] = taken(size);
    volatile unsigned char *victim = hidden_pointer(blocks[2]);
    size_t usable = malloc_usable_size(blocks[2]);
    for (size_t i = 0; i < length; i++)
        victim[(ptrdiff_t)(from < 0 ? 0 : usable) + from + (ptrdiff_t)i] ^= 0x55;
    for (int i = 0; i < 6; i++)
        given(blocks[(i + 2) % 6]);
    state(1, SIZE);
}

CASE(SECURITY, overflow_byte, "one byte is written after a small block") { around(SIZE, 0, 1); }
CASE(SECURITY, overflow_words, "32 bytes are written after a small block") { around(SIZE, 0, 32); }
CASE(SECURITY, overflow_mebibyte, "a mebibyte is written after a small block") { around(SIZE, 0, 1 << 20); }
CASE(SECURITY, underflow_byte, "one byte is written before a small block") { around(SIZE, -1, 1); }
CASE(SECURITY, underflow_words, "32 bytes are written before a small block") { around(SIZE, -32, 32); }
CASE(SECURITY, overflow_large_byte, "one byte is written after a block of 3 MiB") { around(LARGE, 0, 1); }
CASE(SECURITY, overflow_large_page, "a page is written after a block of 3 MiB") { around(LARGE, 0, 4096); }
CASE(SECURITY, underflow_large_page, "a page is written before a block of 3 MiB") { around(LARGE, -4096, 4096); }

/* The effect on a neighbour, whose data is what an attacker wants to change. */
CASE(SECURITY, neighbour_changed, "what is written after one block changes the data of another in use") {
    enum { COUNT = 200 };
    static unsigned char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = taken(SIZE);
    volatile unsigned char *victim = hidden_pointer(blocks[COUNT / 2]);
    size_t usable = malloc_usable_size(blocks[COUNT / 2]);
    for (size_t i = 0; i < 64; i++)
        victim[usable + i] = 0x11;
    int changed = 0;
    for (int i = 0; i < COUNT; i++)
        changed += i != COUNT / 2 && marked(blocks[i], 0, SIZE) < SIZE;
    for (int i = 0; i < COUNT; i++)
        given(blocks[i]);
    state(changed, SIZE);
}

CASE(SECURITY, zero_size_written, "a block of no bytes is written past its usable ones, and freed") {
    unsigned char *block = malloc(hidden(0));
    if (!block) {
        state(0, SIZE);
        return;
    }
    ((volatile unsigned char *)block)[malloc_usable_size(block)] = MARK;
    given(block);
    state(1, SIZE);
}

CASE(SECURITY, neighbours_predictable, "blocks of one size have one distance from each other, so that an overflow finds its victim") {
    enum { COUNT = 16 };
    static unsigned char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = taken(SIZE);
    int same = 1;
    for (int i = 2; i < COUNT; i++)
        same &= blocks[i] - blocks[i - 1] == blocks[1] - blocks[0];
    state(same, SIZE);
}
