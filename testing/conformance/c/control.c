/* control.c: what a manager reports through include/heaptoll.h. */
#include "check.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "heaptoll.h"

enum { CLASSES = 4096, HELD = 2000 };
static struct heaptoll_class classes[CLASSES];
static void *blocks[HELD];

static struct heaptoll_census take(void) {
    struct heaptoll_census census = {.size = sizeof census, .classes = classes, .class_capacity = CLASSES};
    int status = control()->census(&census);
    CHECK(status == 0, "the census answered %d", status);
    return census;
}

CASE(CONTROL, control_header, "the control struct has version, size, name, census and check, and is always the same") {
    const struct heaptoll_control *contract = control();
    CHECK(contract == control(), "heaptoll_control_v1 gave another pointer the second time");
    CHECK(contract->version == HEAPTOLL_CONTROL_VERSION, "version is %u", contract->version);
    CHECK(contract->size >= sizeof *contract, "size is %u, less than version 1 has", contract->size);
    CHECK(contract->name && *contract->name, "there is no name");
    CHECK(contract->manager_version && *contract->manager_version, "there is no manager_version");
    CHECK(contract->census, "there is no census");
    CHECK(contract->check, "there is no check");
    note("%s %s", contract->name, contract->manager_version);
    if (contract->collect) {
        int status = contract->collect();
        CHECK(status == 0 || status == ENOTSUP, "collect answered %d", status);
    }
}

static uint64_t hold(uint64_t *usable) {
    struct rng rng = {41};
    uint64_t requested = 0;
    *usable = 0;
    for (size_t i = 0; i < HELD; i++) {
        size_t size = 1 + rng_below(&rng, i % 100 ? 700 : 100000);
        blocks[i] = malloc(size);
        CHECK(blocks[i], "malloc(%zu) gave null", size);
        requested += size;
        *usable += malloc_usable_size(blocks[i]);
    }
    return requested;
}

CASE(CONTROL, census_live, "live bytes follow what the program holds") {
    uint64_t before = take().live_bytes, usable;
    uint64_t requested = hold(&usable), grown = take().live_bytes - before;
    CHECK(grown >= requested, "%llu bytes are held, and live bytes grew by %llu", (unsigned long long)requested,
          (unsigned long long)grown);
    /* A header may count as part of the block; a page may not. */
    CHECK(grown <= usable + (uint64_t)HELD * 64, "%llu usable bytes are held, and live bytes grew by %llu",
          (unsigned long long)usable, (unsigned long long)grown);
    struct heaptoll_census census = take();
    CHECK(census.requested_bytes == UINT64_MAX || census.requested_bytes <= census.live_bytes,
          "requested bytes %llu are more than live bytes %llu", (unsigned long long)census.requested_bytes,
          (unsigned long long)census.live_bytes);
    CHECK(census.mapped_high_bytes >= census.mapped_bytes, "the high-water mark is below what is mapped");
    check_heap("with blocks held");
}

CASE(CONTROL, census_freed, "live bytes go down again when all is freed") {
    uint64_t before = take().live_bytes, usable;
    hold(&usable);
    for (size_t i = 0; i < HELD; i += 2)
        free(blocks[i]);
    check_heap("with half of the blocks freed");
    for (size_t i = 1; i < HELD; i += 2)
        free(blocks[i]);
    uint64_t left = take().live_bytes;
    CHECK(left == before, "live bytes were %llu, and are %llu after all was freed", (unsigned long long)before,
          (unsigned long long)left);
}

static void sums(const struct heaptoll_census *census, const char *when) {
    uint64_t live = 0, free_bytes = 0, quarantined = 0;
    CHECK(census->class_count <= CLASSES, "there are %u classes", census->class_count);
    for (uint32_t i = 0; i < census->class_count; i++) {
        const struct heaptoll_class *one = &classes[i];
        live += one->live_bytes;
        free_bytes += one->free_bytes;
        quarantined += one->quarantined_bytes;
        /* A class's blocks are of one size; those of a range of sizes up to it. */
        CHECK(one->block_bytes == 0 || one->live_bytes <= one->live_blocks * one->block_bytes,
              "%s: class %u has %llu live blocks of up to %llu bytes and %llu live bytes", when, i,
              (unsigned long long)one->live_blocks, (unsigned long long)one->block_bytes,
              (unsigned long long)one->live_bytes);
        CHECK(one->block_bytes == 0 || one->free_bytes <= one->free_blocks * one->block_bytes,
              "%s: class %u has %llu free blocks of up to %llu bytes and %llu free bytes", when, i,
              (unsigned long long)one->free_blocks, (unsigned long long)one->block_bytes,
              (unsigned long long)one->free_bytes);
        CHECK((one->live_blocks == 0) == (one->live_bytes == 0), "%s: class %u has %llu live blocks of %llu bytes",
              when, i, (unsigned long long)one->live_blocks, (unsigned long long)one->live_bytes);
    }
    CHECK(live == census->live_bytes, "%s: the classes' live bytes are %llu, the census has %llu", when,
          (unsigned long long)live, (unsigned long long)census->live_bytes);
    CHECK(free_bytes == census->free_bytes, "%s: the classes' free bytes are %llu, the census has %llu", when,
          (unsigned long long)free_bytes, (unsigned long long)census->free_bytes);
    CHECK(quarantined == census->quarantined_bytes, "%s: the classes' quarantined bytes are not the census's", when);
}

CASE(CONTROL, census_classes, "the classes sum to the totals") {
    uint64_t usable;
    struct heaptoll_census census = take();
    sums(&census, "before");
    hold(&usable);
    census = take();
    sums(&census, "with blocks held");
    CHECK(census.class_count > 0, "there is no class");
    for (size_t i = 0; i < HELD; i += 3)
        free(blocks[i]);
    census = take();
    sums(&census, "with a third freed");
}

CASE(CONTROL, census_capacity, "no more classes are written than the capacity; totals alone may be requested") {
    uint64_t usable;
    hold(&usable);
    struct heaptoll_census whole = take();
    uint32_t capacity = whole.class_count / 2;
    memset(classes, 0xEE, sizeof classes);
    struct heaptoll_census part = {.size = sizeof part, .classes = classes, .class_capacity = capacity};
    CHECK(control()->census(&part) == 0, "a census with a capacity of %u classes failed", capacity);
    CHECK(part.class_count == whole.class_count, "class_count is %u with a capacity of %u, and %u with one for all",
          part.class_count, capacity, whole.class_count);
    const unsigned char *rest = (const unsigned char *)&classes[capacity];
    for (size_t i = 0; i < sizeof *classes; i++)
        CHECK(rest[i] == 0xEE, "class %u was written, with a capacity of %u", capacity, capacity);
    struct heaptoll_census totals = {.size = sizeof totals};
    CHECK(control()->census(&totals) == 0, "a census without classes failed");
    CHECK(totals.live_bytes == whole.live_bytes, "live bytes differ with and without classes");
}

static int stop;

static void *churns(void *argument) {
    struct rng rng = {(uint64_t)(uintptr_t)argument + 7};
    for (size_t i = 0; i < effort(100000, 20000) && !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        void *block = malloc(1 + rng_below(&rng, 300));
        CHECK(block, "malloc gave null while another thread takes the census");
        free(block);
    }
    return NULL;
}

CASE(CONTROL, census_threaded, "census and check while other threads allocate") {
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, churns, (void *)i) == 0, "pthread_create failed");
    for (size_t i = 0; i < effort(300, 60); i++) {
        struct heaptoll_census census = take();
        uint64_t sum = census.live_bytes + census.free_bytes + census.metadata_bytes + census.quarantined_bytes +
                       census.unused_bytes;
        CHECK(!census.exact || sum == census.mapped_bytes, "an exact census sums to %llu with %llu mapped",
              (unsigned long long)sum, (unsigned long long)census.mapped_bytes);
        CHECK(control()->check() == 0, "the manager's check failed while threads allocate");
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static size_t events;
static uint64_t last_mapped;

static void on_event(const struct heaptoll_event *event, void *context) {
    (void)context;
    events++;
    if (event->kind == HEAPTOLL_HEAP_GROWN || event->kind == HEAPTOLL_HEAP_SHRUNK)
        last_mapped = event->mapped_bytes;
}

CASE(CONTROL, event_listener, "a listener receives growth; there is one at a time") {
    const struct heaptoll_control *contract = control();
    int status = contract->listen ? contract->listen(on_event, NULL) : ENOTSUP;
    if (status == ENOTSUP)
        not_applicable("listen is not supported");
    CHECK(status == 0, "listen answered %d", status);
    CHECK(contract->listen(on_event, &events) == EBUSY, "a second listener was taken");
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = malloc((size_t)1 << 19);
        CHECK(blocks[i], "malloc of 512 KiB gave null");
    }
    CHECK(last_mapped > 0, "100 MiB were allocated, and no event reported growth");
    CHECK(last_mapped == take().mapped_bytes, "the last event reported %llu mapped bytes, the census has %llu",
          (unsigned long long)last_mapped, (unsigned long long)take().mapped_bytes);
    CHECK(contract->listen(NULL, NULL) == 0, "the listener could not be taken out");
    size_t so_far = events;
    for (size_t i = 0; i < 200; i++)
        blocks[200 + i] = malloc((size_t)1 << 19);
    CHECK(events == so_far, "a listener that was taken out was called");
}
