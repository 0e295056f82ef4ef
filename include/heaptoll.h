/* heaptoll.h: what a memory manager may report to heaptoll. All of it is optional; a manager that exports only the
 * malloc family is measured just the same.
 *
 * Two independent contracts:
 *   1. the control symbol, for calls inside the process (census, collection, events);
 *   2. the statistics page, a shared file of counters that outlives the process, however it dies.
 *
 * C11 or later, and C++11 or later. Linux, 64-bit, little-endian. Distributed under MIT or Apache-2.0.
 */
#ifndef HEAPTOLL_H
#define HEAPTOLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define HEAPTOLL_ASSERT(condition, text) static_assert(condition, text)
#else
#define HEAPTOLL_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* ---------------------------------------------------------------------------------------------------------------
 * 1. Control.
 *
 * A manager exports the function heaptoll_control_v1. Several objects of one process may (a layer and its manager),
 * so it is looked up per object (dlopen with RTLD_NOLOAD, then dlsym), never by RTLD_DEFAULT.
 *
 * Growth: a later version only appends members to these structs and increases `size`; a reader reads no member beyond
 * the `size` it finds. A change that breaks this gets a new symbol, heaptoll_control_v2.
 *
 * Functions return 0, or a positive errno value (ENOTSUP: not in this manager or mode; EAGAIN: not now, for example
 * inside an event). A null function pointer means ENOTSUP. Unless stated otherwise they may be called from any thread,
 * not from signal handlers, and take the manager's own locks.
 */

/* One size class, or one range of sizes when the manager has no classes. */
struct heaptoll_class {
    uint64_t block_bytes;        /* size of its blocks as allocated, of a range the largest in it;
                                  * 0: blocks of many sizes (large objects) */
    uint64_t live_blocks;        /* allocated and not freed */
    uint64_t live_bytes;         /* bytes in them, internal fragmentation included */
    uint64_t free_blocks;        /* ready to be allocated */
    uint64_t free_bytes;
    uint64_t quarantined_blocks; /* freed and not reusable yet */
    uint64_t quarantined_bytes;
};

/* A snapshot of the heap. The caller sets size, classes and class_capacity; the manager fills in the rest.
 * live + free + metadata + quarantined + unused == mapped, in bytes. */
struct heaptoll_census {
    uint32_t size;                 /* sizeof(struct heaptoll_census) of the caller */
    uint32_t class_capacity;       /* elements of `classes`; 0 if only totals are requested */
    uint32_t class_count;          /* out: number of classes; min(class_count, class_capacity) were written */
    uint32_t exact;                /* out: 1 if all other threads were stopped or locked out, 0 if it is a sum of
                                    * counters read while they changed */
    uint64_t mapped_bytes;         /* address space mapped for the heap */
    uint64_t mapped_high_bytes;    /* its high-water mark */
    uint64_t live_bytes;           /* in blocks that the program holds */
    uint64_t free_bytes;           /* in blocks ready to be allocated, thread caches included */
    uint64_t metadata_bytes;       /* headers, bitmaps, tables, the manager's own static data */
    uint64_t quarantined_bytes;    /* freed by the program, not reusable yet */
    uint64_t unused_bytes;         /* mapped, never carved into blocks yet */
    uint64_t requested_bytes;      /* of live_bytes, what the program requested; UINT64_MAX where unknown */
    struct heaptoll_class *classes; /* in, may be null */
};

enum heaptoll_event_kind {
    HEAPTOLL_COLLECTION_START = 1, /* value: reason, 1 = allocation, 2 = requested, 3 = memory pressure */
    HEAPTOLL_COLLECTION_END = 2,   /* value: live bytes found. A collection in increments, between which mutators run,
                                    * announces start and end of each, under one number */

    HEAPTOLL_PHASE = 3,            /* value: enum heaptoll_phase that begins */
    HEAPTOLL_HEAP_GROWN = 4,       /* value: bytes mapped after it */
    HEAPTOLL_HEAP_SHRUNK = 5       /* value: bytes mapped after it */
};

enum heaptoll_phase {
    HEAPTOLL_PHASE_STOP = 1,    /* mutators are being stopped */
    HEAPTOLL_PHASE_ROOTS = 2,
    HEAPTOLL_PHASE_MARK = 3,
    HEAPTOLL_PHASE_SWEEP = 4,
    HEAPTOLL_PHASE_RESUME = 5   /* mutators run again */
};

struct heaptoll_event {
    uint32_t size;         /* sizeof(struct heaptoll_event) of the manager */
    uint32_t kind;         /* enum heaptoll_event_kind */
    uint64_t time_ns;      /* CLOCK_MONOTONIC */
    uint64_t collection;   /* number of the collection, from 1; 0 outside of one */
    uint64_t value;        /* see the kinds */
    uint64_t mapped_bytes; /* at this time */
};

/* Called on the thread that caused the event, with the manager's locks held and perhaps all other threads stopped:
 * it must not allocate, free, lock, or wait for another thread. */
typedef void (*heaptoll_event_function)(const struct heaptoll_event *event, void *context);

struct heaptoll_control {
    uint32_t version; /* 1 */
    uint32_t size;    /* sizeof(struct heaptoll_control) of the manager */
    const char *name;            /* e.g. "knuth"; UTF-8, never null, lives as long as the object */
    const char *manager_version; /* e.g. "0.1.0"; never null */
    int (*census)(struct heaptoll_census *census);
    int (*collect)(void); /* a full collection, finished on return */
    /* One listener; a null function removes it. Returns EBUSY when another one is set. */
    int (*listen)(heaptoll_event_function function, void *context);
    /* Walks the whole heap and checks its invariants: 0, or EINVAL after a message on standard error. */
    int (*check)(void);
};

#define HEAPTOLL_CONTROL_VERSION 1u

/* The control struct; never null, always the same. May be called before main and in signal handlers. */
const struct heaptoll_control *heaptoll_control_v1(void);

/* Memory that holds no pointers: as malloc, and a collector need not read it. A manager may export it; where it does not,
 * malloc serves as well, so a program looks it up (dlsym of RTLD_DEFAULT, which finds a layer's first) and falls back.
 * free and realloc take the block as any other; one that realloc moves may be read again. */
void *heaptoll_malloc_pointer_free(size_t size);

HEAPTOLL_ASSERT(sizeof(struct heaptoll_class) == 56, "struct heaptoll_class has a fixed layout");
HEAPTOLL_ASSERT(sizeof(struct heaptoll_census) == 88, "struct heaptoll_census has a fixed layout");
HEAPTOLL_ASSERT(sizeof(struct heaptoll_event) == 40, "struct heaptoll_event has a fixed layout");
HEAPTOLL_ASSERT(sizeof(struct heaptoll_control) == 56, "struct heaptoll_control has a fixed layout");

/* ---------------------------------------------------------------------------------------------------------------
 * 2. The statistics page.
 *
 * The tool creates a file of HEAPTOLL_STATS_HEADER_BYTES + slots * HEAPTOLL_STATS_SLOT_BYTES bytes, zeroed except the
 * first members of the header, and names it in the environment variable HEAPTOLL_STATS. A manager or layer that finds
 * the variable, once per program image:
 *   - opens the file O_RDWR|O_CLOEXEC, checks magic, version, the two sizes and the length of the file, maps it
 *     MAP_SHARED and closes it. When anything is wrong it does without, silently. Where the user may not open it, a
 *     file PATH.UID (the effective user's number) may exist for it.
 *   - keeps `slots` as it was checked: any process that shares the page may write to it, so nothing from which an
 *     address is computed is read from it again.
 *   - takes the slot whose number is the old value of an atomic fetch-and-add of 1 on `claimed`. A number >= the
 *     kept slots means that none is left; `claimed` shows the tool how many writers did without.
 *   - has the kernel populate the slot (MADV_POPULATE_WRITE) and does without when there is no memory: a store would
 *     raise SIGBUS.
 *   - fills in the members from kind to exe, then stores HEAPTOLL_SLOT_IN_USE to state (release).
 * Each writer has a slot of its own: a layer and its manager in one process claim two, with different kind and writer.
 * A child of fork claims its own slot before its first count (pthread_atfork, or keep the slot's address on a page
 * with MADV_WIPEONFORK); an image started by exec starts from zero; a child of vfork counts in its parent's slot.
 * Slots are never released. Counters are 64-bit, naturally aligned, updated by relaxed atomics or under the
 * writer's lock, and never decrease, except the "now" values. A counter that a writer does not keep stays 0.
 */

#define HEAPTOLL_STATS_VARIABLE "HEAPTOLL_STATS"
#define HEAPTOLL_STATS_MAGIC UINT64_C(0x4c4c4f5450414548) /* the bytes "HEAPTOLL" */
#define HEAPTOLL_STATS_VERSION 1u
#define HEAPTOLL_STATS_HEADER_BYTES 4096u
#define HEAPTOLL_STATS_SLOT_BYTES 512u

struct heaptoll_stats_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* HEAPTOLL_STATS_HEADER_BYTES */
    uint32_t slot_bytes;   /* HEAPTOLL_STATS_SLOT_BYTES */
    uint32_t slots;        /* number of slots in the file */
    uint32_t claimed;      /* atomic: how many were requested; may exceed slots */
    uint32_t reserved_u32;
    uint8_t reserved[4064];
};

enum heaptoll_slot_state {
    HEAPTOLL_SLOT_FREE = 0, /* not claimed, or claimed and abandoned or not filled in yet: to be ignored */
    HEAPTOLL_SLOT_IN_USE = 2
};

enum heaptoll_slot_kind { HEAPTOLL_KIND_MANAGER = 1, HEAPTOLL_KIND_LAYER = 2 };

struct heaptoll_stats_slot {
    uint32_t state;      /* enum heaptoll_slot_state */
    uint32_t kind;       /* enum heaptoll_slot_kind */
    int32_t pid;         /* process, as getpid gives it */
    int32_t parent_pid;
    uint64_t claimed_ns; /* CLOCK_MONOTONIC at the claim: distinguishes images with the same pid */
    uint64_t reserved_0;
    char writer[32];     /* name of the manager or layer, NUL-terminated */
    char exe[192];       /* /proc/self/exe, NUL-terminated; the last 191 bytes of a longer path */

    uint64_t mapped_bytes;      /* now: address space mapped for the heap, bytes */
    uint64_t mapped_high_bytes; /* the heap's high-water mark, bytes */
    uint64_t live_bytes;        /* now: bytes in blocks that the program holds */
    uint64_t live_high_bytes;   /* their high-water mark */
    uint64_t malloc_calls;      /* calls for a new block: malloc, calloc, the aligned ones, operator new,
                                 * realloc(NULL, n) */
    uint64_t realloc_calls;     /* realloc and reallocarray of an existing block */
    uint64_t free_calls;        /* calls that free a block: free, operator delete; not those of NULL */
    uint64_t new_calls;         /* of malloc_calls, those by operator new */
    uint64_t delete_calls;      /* of free_calls, those by operator delete */
    uint64_t failed_calls;      /* of malloc_calls and realloc_calls, those that returned null */
    uint64_t requested_bytes;   /* sum of the requested sizes */
    uint64_t collections;       /* finished */
    uint64_t pause_total_ns;    /* nanoseconds for which the program was stopped by the collector */
    uint64_t pause_max_ns;      /* longest of them */
    uint64_t collected_bytes;   /* bytes in blocks that collections reclaimed */
    uint64_t searches;          /* searches through a free structure; these three are reported at process end */
    uint64_t search_steps;      /* blocks examined in them */
    uint64_t search_longest;    /* blocks examined in the longest */
    uint64_t used_bytes;          /* now: bytes of pages that hold a live block (a layer cannot see what a manager has mapped) */
    uint64_t used_high_bytes;     /* their high-water mark */
    uint64_t held_bytes;          /* now: bytes in quarantined blocks */
    uint64_t held_high_bytes;     /* their high-water mark */
    uint64_t held_releases;       /* times that a thread released its quarantined blocks */
    uint64_t written_after_free;  /* blocks found changed when they left a quarantine */
    uint64_t refused_calls;       /* of failed_calls, those that failed because the heap has a limit */
    uint64_t collector_cpu_ns;    /* processor time of collections, on all threads that took part, ns */
    uint64_t unread_places;       /* bits: places in use by the program in which it may keep its only pointer to a block and
                                   * which collections cannot read: 1 requests of io_uring, 2 of io_submit, 4 values of
                                   * signals, 8 epoll and timers in files that are closed to the process */
    uint64_t abandon_causes;      /* bits: why collections were abandoned: 1 a thread did not stop, 2 no memory, 4 a process
                                   * that vfork, clone or _Fork made, 8 no list of the threads, 16 of the mappings, 32 no
                                   * descriptor, 64 no signal, 128 a full queue of signals, 256 a thread did not leave the
                                   * manager */
    uint64_t reserved_1[4];
};

HEAPTOLL_ASSERT(sizeof(struct heaptoll_stats_header) == 4096, "the header is one page");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_header, claimed) == 24, "claimed is at 24");
HEAPTOLL_ASSERT(sizeof(struct heaptoll_stats_slot) == 512, "a slot is 512 bytes");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_slot, claimed_ns) == 16, "claimed_ns is at 16");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_slot, writer) == 32, "writer is at 32");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_slot, exe) == 64, "exe is at 64");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_slot, mapped_bytes) == 256, "counters begin at 256");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_slot, malloc_calls) == 288, "malloc_calls is at 288");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_slot, collections) == 344, "collections is at 344");
HEAPTOLL_ASSERT(offsetof(struct heaptoll_stats_slot, collected_bytes) == 368, "collected_bytes is at 368");

#ifdef __cplusplus
}
#endif

#endif
