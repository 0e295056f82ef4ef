/* large.c: blocks of 64 MiB to 1 GiB, touched here and there. */
#include "check.h"

#include <malloc.h>
#include <stdlib.h>

enum { STEP = 1 << 20 };

CASE(PLAIN, large_blocks, "blocks of 64 MiB to 1 GiB (256 MiB when quick) can be allocated, touched, cleared and freed") {
    static const size_t sizes[] = {64, 256, 1024};
    for (size_t i = 0; i < effort(3, 2); i++) {
        size_t size = sizes[i] << 20;
        unsigned char *block = malloc(size);
        CHECK(block, "malloc of %zu MiB gave null", sizes[i]);
        CHECK((uintptr_t)block % 16 == 0, "malloc of %zu MiB gave %p", sizes[i], (void *)block);
        CHECK(malloc_usable_size(block) >= size, "a block of %zu MiB has %zu usable bytes", sizes[i],
              malloc_usable_size(block));
        for (size_t at = 0; at < size; at += STEP)
            block[at] = (unsigned char)(at / STEP);
        block[size - 1] = 0x42;
        void *small = malloc(100);
        CHECK(small, "malloc(100) gave null with %zu MiB live", sizes[i]);
        fill(small, 100, 1);
        for (size_t at = 0; at < size; at += STEP)
            CHECK(block[at] == (unsigned char)(at / STEP), "byte %zu of a block of %zu MiB changed", at, sizes[i]);
        CHECK(block[size - 1] == 0x42, "the last byte of a block of %zu MiB changed", sizes[i]);
        free(block);
        check_filled(small, 100, 1, "a block next to a large one");
        free(small);
    }
    unsigned char *zeroed = calloc((size_t)200 << 20, 1);
    CHECK(zeroed, "calloc of 200 MiB gave null");
    for (size_t at = 0; at < (size_t)200 << 20; at += STEP / 2 + 1)
        CHECK(zeroed[at] == 0, "byte %zu of a calloc of 200 MiB is %#x", at, zeroed[at]);
    free(zeroed);
}
