/* alignment.c: where blocks begin. */
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

CASE(PLAIN, alignment_default, "every block of 16 bytes and more is aligned to 16, as the ABI demands") {
    size_t sizes[BORDERS], count = border_sizes(sizes, 1 << 20);
    static void *blocks[BORDERS * 3];
    size_t held = 0;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] < 16)
            continue;
        void *block = blocks[held++] = malloc(sizes[i]);
        CHECK(block && (uintptr_t)block % 16 == 0, "malloc(%zu) gave %p", sizes[i], block);
        block = blocks[held++] = calloc(1, sizes[i]);
        CHECK(block && (uintptr_t)block % 16 == 0, "calloc(1, %zu) gave %p", sizes[i], block);
        block = blocks[held++] = realloc(malloc(sizes[i] / 2), sizes[i]);
        CHECK(block && (uintptr_t)block % 16 == 0, "realloc to %zu bytes gave %p", sizes[i], block);
    }
    while (held)
        free(blocks[--held]);
    static void *small[4000];
    for (size_t i = 0; i < 4000; i++) {
        small[i] = malloc(16 + i % 777);
        CHECK(small[i] && (uintptr_t)small[i] % 16 == 0, "malloc(%zu) gave %p", 16 + i % 777, small[i]);
        if (i % 3 == 1)
            free(small[i - 1]);
    }
}

CASE(PLAIN, alignment_small, "blocks under 16 bytes are aligned for what fits in them; those of heaptoll to 16") {
    size_t least = 4096;
    for (size_t i = 0; i < 3000; i++) {
        size_t size = 1 + i % 15;
        uintptr_t block = (uintptr_t)malloc(size);
        CHECK(block, "malloc(%zu) gave null", size);
        size_t alignment = block & -block;
        if (alignment < least)
            least = alignment;
        size_t wanted = control() ? 16 : size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
        CHECK(alignment >= wanted, "malloc(%zu) gave %#zx, which is not aligned to %zu", size, (size_t)block, wanted);
    }
    if (least < 16)
        note("blocks under 16 bytes are aligned to %zu", least);
}

CASE(PLAIN, alignment_powers, "alignments up to 1 MiB by memalign, posix_memalign and aligned_alloc") {
    for (size_t alignment = 1; alignment <= (size_t)1 << 20; alignment *= 2) {
        const size_t sizes[] = {1, 24, alignment - 1, alignment, alignment + 1, alignment + alignment / 2};
        void *blocks[18] = {NULL};
        size_t of[18], held = 0;
        for (size_t i = 0; i < 6; i++)
            for (int by = 0; by < 3; by++) {
                size_t size = sizes[i] ? sizes[i] : 1;
                void *block = NULL;
                if (by == 0)
                    block = memalign(alignment, size);
                else if (by == 1)
                    /* C11 wants a multiple. */
                    block = aligned_alloc(alignment, size = (size + alignment - 1) & ~(alignment - 1));
                else if (alignment >= sizeof(void *)) {
                    int status = posix_memalign(&block, alignment, size);
                    CHECK(status == 0, "posix_memalign(%zu, %zu) answered %d", alignment, size, status);
                } else
                    continue;
                static const char *const names[] = {"memalign", "aligned_alloc", "posix_memalign"};
                CHECK(block && (uintptr_t)block % alignment == 0, "%s(%zu, %zu) gave %p", names[by], alignment, size,
                      block);
                CHECK(malloc_usable_size(block) >= size, "%s(%zu, %zu) has %zu usable bytes", names[by], alignment,
                      size, malloc_usable_size(block));
                fill(block, size, held);
                of[held] = size;
                blocks[held++] = block;
            }
        for (size_t i = 0; i < held; i++)
            check_filled(blocks[i], of[i], i, "an aligned block among others");
        for (size_t i = 0; i < held; i++)
            free(blocks[i]);
    }
}

CASE(PLAIN, alignment_pages, "valloc and pvalloc give whole pages' beginnings, pvalloc whole pages") {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 1; size < 100000; size = size * 2 + 1) {
        void *one = valloc(size), *other = pvalloc(size);
        CHECK(one && (uintptr_t)one % page == 0, "valloc(%zu) gave %p", size, one);
        CHECK(other && (uintptr_t)other % page == 0, "pvalloc(%zu) gave %p", size, other);
        size_t whole = (size + page - 1) & ~(page - 1);
        CHECK(malloc_usable_size(other) >= whole, "pvalloc(%zu) has %zu usable bytes", size,
              malloc_usable_size(other));
        fill(one, size, 1);
        fill(other, whole, 2);
        check_filled(one, size, 1, "a block of valloc");
        free(one);
        free(other);
    }
}

CASE(PLAIN, posix_memalign_refuses, "posix_memalign: EINVAL for what is no power of two or less than a pointer") {
    static const size_t wrong[] = {0, 1, 2, 3, 4, 7, 12, 24, 48, 100, 4095, 4097, SIZE_MAX, ((size_t)1 << 63) + 8};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *mark = &i, *result = mark;
        errno = 12345;
        int status = posix_memalign(&result, hidden(wrong[i]), 100);
        CHECK(status == EINVAL, "posix_memalign(%zu, 100) answered %d instead of EINVAL", wrong[i], status);
        CHECK(result == mark, "posix_memalign(%zu, 100) failed and wrote its result", wrong[i]);
        CHECK(errno == 12345, "posix_memalign(%zu, 100) set errno to %d", wrong[i], errno);
    }
}

/* memalign has no standard, and glibc 2.36 rounds up in both: only heaptoll's own must refuse. */
CASE(PLAIN, memalign_refuses, "memalign and aligned_alloc: heaptoll's refuse what is no power of two with EINVAL") {
    static const size_t wrong[] = {3, 24, 48, 4095};
    static const char *const names[] = {"memalign", "aligned_alloc"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int by = 0; by < 2; by++) {
            errno = 0;
            size_t alignment = hidden(wrong[i]);
            void *block = by ? aligned_alloc(alignment, wrong[i] * 2) : memalign(alignment, wrong[i] * 2);
            int error = errno;
            if (control()) {
                CHECK(!block, "%s(%zu, ...) gave a block", names[by], wrong[i]);
                CHECK(error == EINVAL, "%s(%zu, ...) set errno to %d instead of EINVAL", names[by], wrong[i], error);
            } else if (wrong[i] == 24)
                note("%s(24, 48) gives %s", names[by],
                     block ? (uintptr_t)block % 32 ? "a block not aligned to 32" : "a block aligned to 32"
                     : error == EINVAL ? "null and EINVAL"
                                       : "null without EINVAL");
            free(block);
        }
}
