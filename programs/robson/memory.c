/* The memory that the manager took, measured in three independent ways: the addresses it returned, the process's memory
 * by the kernel, and the manager's own figures. */
#define _GNU_SOURCE
#include "adversary.h"
#include "../../include/heaptoll.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- addresses: a bit for every 16 bytes, in a hashed table of regions of 1 MiB ----------------------------------- */

#define GRANULE 16
#define REGION_SHIFT 20
#define REGION_BYTES ((uintptr_t)1 << REGION_SHIFT)
#define WORDS (REGION_BYTES / GRANULE / 64)
#define SLOTS 65536 /* regions that can be distinguished: 64 GiB of addresses */

struct region {
    uintptr_t number; /* address >> REGION_SHIFT; 0: free slot */
    uint64_t *bits;
};

static struct region *regions;
static size_t region_count;
static size_t granules;

static struct region *region_of(uintptr_t number) {
    if (!regions) regions = own(SLOTS, sizeof *regions);
    size_t slot = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 48) % SLOTS;
    while (regions[slot].number && regions[slot].number != number) slot = (slot + 1) % SLOTS;
    struct region *region = &regions[slot];
    if (!region->number) {
        if (++region_count > SLOTS / 2) die("the manager's blocks are spread over too many regions of 1 MiB");
        region->number = number;
        region->bits = own(WORDS, sizeof *region->bits);
    }
    return region;
}

void extent_add(uintptr_t from, size_t bytes) {
    uintptr_t granule = from / GRANULE, end = (from + bytes + GRANULE - 1) / GRANULE;
    while (granule < end) {
        struct region *region = region_of(granule * GRANULE >> REGION_SHIFT);
        uintptr_t base = region->number * (REGION_BYTES / GRANULE);
        uintptr_t stop = base + REGION_BYTES / GRANULE < end ? base + REGION_BYTES / GRANULE : end;
        while (granule < stop) {
            size_t bit = granule - base, length = 64 - bit % 64;
            if (length > stop - granule) length = stop - granule;
            uint64_t mask = (length == 64 ? ~UINT64_C(0) : (UINT64_C(1) << length) - 1) << bit % 64;
            uint64_t *word = &region->bits[bit / 64];
            granules += (size_t)__builtin_popcountll(mask & ~*word);
            *word |= mask;
            granule += length;
        }
    }
}

size_t extent_bytes(void) { return granules * GRANULE; }

static int by_number(const void *a, const void *b) {
    uintptr_t x = ((const struct region *)a)->number, y = ((const struct region *)b)->number;
    return (x > y) - (x < y);
}

/* Regions further apart than this hold different pieces of the heap. */
#define FAR_REGIONS 64

size_t extent_span(size_t *pieces) {
    struct region *sorted = own(region_count, sizeof *sorted);
    size_t count = 0, span = 0;
    for (size_t i = 0; regions && i < SLOTS; i++) {
        if (regions[i].number) sorted[count++] = regions[i];
    }
    /* Shell sort: qsort may call malloc. */
    for (size_t gap = count / 2; gap; gap /= 2) {
        for (size_t i = gap; i < count; i++) {
            struct region held = sorted[i];
            size_t j = i;
            for (; j >= gap && by_number(&sorted[j - gap], &held) > 0; j -= gap) sorted[j] = sorted[j - gap];
            sorted[j] = held;
        }
    }
    *pieces = 0;
    uintptr_t low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        uintptr_t base = sorted[i].number << REGION_SHIFT;
        size_t begin = 0, end = WORDS;
        while (begin < WORDS && !sorted[i].bits[begin]) begin++;
        if (begin == WORDS) continue;
        while (!sorted[i].bits[end - 1]) end--;
        uintptr_t from = base + (begin * 64 + (size_t)__builtin_ctzll(sorted[i].bits[begin])) * GRANULE;
        uintptr_t to = base + (end * 64 - (size_t)__builtin_clzll(sorted[i].bits[end - 1])) * GRANULE;
        if (!*pieces || from - high > FAR_REGIONS * REGION_BYTES) {
            span += high - low;
            low = from;
            ++*pieces;
        }
        high = to;
    }
    return span + high - low;
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

size_t anonymous_bytes(void) {
    char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    const char *line = strstr(text, "\nAnonymous:");
    return line ? (size_t)strtoull(line + strlen("\nAnonymous:"), NULL, 10) * 1024 : 0;
}

/* --- the manager -------------------------------------------------------------------------------------------------- */

static const struct heaptoll_control *control;
static char object_name[1024];

const char *malloc_object(void) { return object_name; }

/* The object that malloc comes from, when it exports the control symbol: a layer in front of it may export it too. */
bool census_find(void) {
    Dl_info info;
    void *function = dlsym(RTLD_DEFAULT, "malloc");
    if (!function || !dladdr(function, &info) || !info.dli_fname) return false;
    snprintf(object_name, sizeof object_name, "%s", info.dli_fname);
    void *object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!object) return false;
    const struct heaptoll_control *(*find)(void) = NULL;
    void *symbol = dlsym(object, "heaptoll_control_v1");
    Dl_info owner;
    /* dlsym on an object also searches the objects it depends on. */
    if (symbol && dladdr(symbol, &owner) && owner.dli_fbase == info.dli_fbase) memcpy(&find, &symbol, sizeof find);
    control = find ? find() : NULL;
    return control != NULL;
}

const char *census_name(void) { return control ? control->name : ""; }

bool census_mapped(uint64_t *now, uint64_t *most) {
    struct heaptoll_census census = {.size = sizeof census};
    if (!control || !control->census || control->census(&census) != 0) return false;
    *now = census.mapped_bytes;
    *most = census.mapped_high_bytes;
    return true;
}

int census_check(void) { return control && control->check ? control->check() : -1; }
