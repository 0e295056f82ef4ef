/* The allocator of gcbench.c, chosen at compile time:
 *   (nothing)      malloc, never freed: for a collector under malloc
 *   GCBENCH_FREE   malloc, and free of each tree when it is dropped
 *   GCBENCH_TITHE  tithe_malloc and tithe_malloc_atomic, linked with libtithe.a
 *   GCBENCH_GC     GC_MALLOC and GC_MALLOC_ATOMIC of Boehm's libgc
 *
 * START() comes first in main. NEW and NEW_ATOMIC give a block or null; the latter's contents hold no pointers.
 * DROP frees a block, where blocks are freed. COLLECTIONS() is how many there have been, and COLLECTING_MS() how long they
 * took; negative when unknown. */
#ifndef ALLOCATOR_H
#define ALLOCATOR_H

#if defined GCBENCH_TITHE

#include "../../include/tithe.h"

static inline long long tithes_collections(int (*stats)(struct tithe_stats *)) {
    struct tithe_stats counters = {.size = sizeof counters};
    return stats(&counters) == 0 ? (long long)counters.collections : -1;
}

static inline double tithes_collecting_ms(void) {
    struct tithe_stats counters = {.size = sizeof counters};
    return tithe_stats(&counters) == 0 ? (double)counters.pause_total_ns / 1e6 : -1;
}

#define ALLOCATOR "tithe"
#define START() ((void)0)
#define NEW(bytes) tithe_malloc(bytes)
#define NEW_ATOMIC(bytes) tithe_malloc_atomic(bytes)
#define COLLECTIONS() tithes_collections(tithe_stats)
#define COLLECTING_MS() tithes_collecting_ms()

#elif defined GCBENCH_GC

#include <gc.h>

#define ALLOCATOR "gc"
#define START()                                                                                                        \
    do {                                                                                                               \
        GC_INIT();                                                                                                     \
        GC_start_performance_measurement();                                                                            \
    } while (0)
#define NEW(bytes) GC_MALLOC(bytes)
#define NEW_ATOMIC(bytes) GC_MALLOC_ATOMIC(bytes)
#define COLLECTIONS() ((long long)GC_get_gc_no())
#define COLLECTING_MS() ((double)GC_get_full_gc_total_time())

#else

#include <dlfcn.h>
#include <stdlib.h>

#include "../../include/tithe.h"

/* malloc may be a collector's. Known collectors are found by a symbol they export. */
static inline long long preloaded_collections(void) {
    int (*stats)(struct tithe_stats *);
    *(void **)&stats = dlsym(RTLD_DEFAULT, "tithe_stats");
    if (stats) {
        struct tithe_stats counters = {.size = sizeof counters};
        return stats(&counters) == 0 ? (long long)counters.collections : -1;
    }
    size_t (*number)(void);
    *(void **)&number = dlsym(RTLD_DEFAULT, "GC_get_gc_no");
    return number ? (long long)number() : -1;
}

#ifdef GCBENCH_FREE
#define ALLOCATOR "free"
#define FREES 1
#define DROP(block) free(block)
#else
#define ALLOCATOR "malloc"
#endif
#define START() ((void)0)
#define NEW(bytes) malloc(bytes)
#define NEW_ATOMIC(bytes) malloc(bytes)
#define COLLECTIONS() preloaded_collections()
#define COLLECTING_MS() (-1.0)

#endif

#ifndef FREES
#define FREES 0
#define DROP(block) ((void)(block))
#endif

#endif
