/* statistics.c: glibc's own statistics of malloc (<malloc.h>). Where a manager leaves them to glibc, they describe
 * glibc's heap, which is empty, and mislead a program that shows them. */
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heaptoll.h"

/* mallinfo is tested too, although its numbers are too narrow. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { BLOCKS = 40 };

static const char *object_of(const char *name) {
    Dl_info of;
    void *function = dlsym(RTLD_DEFAULT, name);
    return function && dladdr(function, &of) ? of.dli_fname : "";
}

/* The number after a text. */
static unsigned long number_after(const char *text, const char *before) {
    const char *found = strstr(text, before);
    CHECK(found, "there is no `%s` in: %s", before, text);
    return strtoul(found + strlen(before), NULL, 10);
}

static char text[16384];

/* The text that malloc_stats writes to standard error. */
static void read_stats(void) {
    int ends[2], saved = dup(2);
    CHECK(saved >= 0 && pipe(ends) == 0 && dup2(ends[1], 2) == 2, "cannot redirect: errno %d", errno);
    malloc_stats();
    CHECK(dup2(saved, 2) == 2, "cannot restore: errno %d", errno);
    close(ends[1]);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    CHECK(length > 0, "malloc_stats wrote nothing");
    text[length] = 0;
    close(ends[0]);
    close(saved);
}

/* The text that malloc_info writes; the stream has a static buffer, so that nothing is allocated meanwhile. */
static void read_info(void) {
    static char whole[sizeof text];
    FILE *stream = fmemopen(whole, sizeof whole, "w");
    CHECK(stream, "fmemopen: errno %d", errno);
    CHECK(malloc_info(0, stream) == 0, "malloc_info failed");
    CHECK(malloc_info(1, stream) == EINVAL, "malloc_info takes options that do not exist");
    CHECK(fclose(stream) == 0, "fclose: errno %d", errno);
    memcpy(text, whole, sizeof text);
}

/* Each row of sizes is in order, and together they are the heap's total. */
static void check_info(void) {
    CHECK(strncmp(text, "<malloc version=\"1\">\n", 21) == 0, "malloc_info begins otherwise: %.60s", text);
    CHECK(strlen(text) > 10 && strcmp(text + strlen(text) - 10, "</malloc>\n") == 0, "malloc_info ends otherwise");
    unsigned long bytes = 0, blocks = 0, before = 0;
    for (const char *row = text; (row = strstr(row, "<size from")); row++) {
        unsigned long from = number_after(row, "from=\""), to = number_after(row, "to=\"");
        CHECK(from > before && to >= from, "sizes %lu to %lu follow %lu", from, to, before);
        before = to;
        bytes += number_after(row, "total=\"");
        blocks += number_after(row, "count=\"");
    }
    const char *rest = strstr(text, "<total type=\"rest\"");
    CHECK(rest, "there is no total: %s", text);
    CHECK(number_after(rest, "count=\"") == blocks, "%lu free blocks in the rows, another total", blocks);
    CHECK(number_after(rest, "size=\"") == bytes, "%lu free bytes in the rows, another total", bytes);
    const char *system = strstr(text, "<system type=\"current\"");
    CHECK(system && number_after(system, "size=\"") >= bytes, "less memory than free blocks");
}

CASE(CONTROL, statistics, "mallinfo2, mallinfo, malloc_stats, malloc_info, malloc_trim and mallopt describe this heap") {
    static const char *const names[] = {"mallinfo2", "mallinfo", "malloc_stats", "malloc_info", "malloc_trim", "mallopt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(strcmp(object_of(names[i]), object_of("heaptoll_control_v1")) == 0, "%s comes from %s", names[i],
              object_of(names[i]));
    void *blocks[BLOCKS];
    size_t requested = 0;
    struct mallinfo2 before = mallinfo2();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(hidden(100 * (i + 1)));
        CHECK(blocks[i], "malloc gave null");
        requested += 100 * (i + 1);
    }
    struct mallinfo2 after = mallinfo2();
    struct heaptoll_census census = {.size = sizeof census};
    CHECK(control()->census(&census) == 0, "the census failed");
    CHECK(after.uordblks >= before.uordblks + requested, "%zu bytes in use after %zu more than %zu", after.uordblks, requested,
          before.uordblks);
    CHECK(after.uordblks == census.live_bytes && after.arena == census.mapped_bytes, "the census has other figures");
    CHECK(after.arena >= after.uordblks + after.fordblks, "parts are more than the whole");
    struct mallinfo narrow = mallinfo();
    CHECK((size_t)narrow.uordblks == after.uordblks && (size_t)narrow.arena == after.arena, "mallinfo has other figures");
    read_stats();
    CHECK(number_after(text, "in use bytes     =") == after.uordblks, "malloc_stats has other figures: %s", text);
    CHECK(number_after(text, "system bytes     =") == after.arena, "malloc_stats has other figures: %s", text);
    for (size_t i = 0; i < BLOCKS; i += 2)
        free(blocks[i]);
    read_info();
    check_info();
    for (size_t i = 1; i < BLOCKS; i += 2)
        free(blocks[i]);
    CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1, "mallopt refuses a parameter of glibc's");
    CHECK(mallopt(4711, 1) == 0, "mallopt takes a parameter that does not exist");
    malloc_trim(0);
}
