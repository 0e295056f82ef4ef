/* manager.c: a small sound manager, and one defect at a time, named by the environment variable HEAPTOLL_MUTANT.
 *
 * The suite must pass the sound one and fail each mutant in the case that is about its defect: else the case is a
 * test that cannot fail. Powers of two with a 32-byte header, free lists, one lock; blocks of 1 MiB and more are
 * mapped one by one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "heaptoll.h"

#define EXPORT __attribute__((visibility("default")))
enum { HEADER = 32, SHIFT_MIN = 5, SHIFT_MAX = 20, SHIFTS = 48, CHUNK = 1 << 22 };
#define LIVE UINT64_C(0x6c697665)
#define FREE UINT64_C(0x66726565)

/* In front of every block; an aligned one has a second, whose base points to the first. */
struct header {
    uint64_t state;
    uint64_t shift; /* the block has 1 << shift bytes, header included */
    struct header *base;
    struct header *next;
};

static struct header *free_lists[SHIFTS];
static unsigned char *chunk, *chunk_end;
static uint64_t mapped, mapped_high, unused, live[SHIFTS], idle[SHIFTS];
static heaptoll_event_function listener;
static void *listener_context;

/* The defect of this process, by name. */
static const char *mutant;
static int is(const char *name) {
    if (!mutant) {
        const char *value = getenv("HEAPTOLL_MUTANT");
        mutant = value ? value : "";
    }
    return strcmp(mutant, name) == 0;
}

/* A recursive lock: handlers of fork run with it held. */
static uintptr_t owner;
static int depth;

static void lock(void) {
    uintptr_t self = (uintptr_t)pthread_self(), unowned = 0;
    if (is("no_lock"))
        return;
    if (__atomic_load_n(&owner, __ATOMIC_RELAXED) != self || is("fork_deadlock"))
        while (!__atomic_compare_exchange_n(&owner, &unowned, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            unowned = 0;
            sched_yield();
        }
    depth++;
    /* Alone on a processor a worker is hardly ever interrupted here; a fork must still find the lock held. */
    static unsigned turns;
    if (is("fork_unsafe") && turns++ % 64 == 0)
        nanosleep(&(struct timespec){0, 50000}, NULL);
}

static void unlock(void) {
    if (is("no_lock"))
        return;
    if (--depth == 0)
        __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
}

/* glibc's own, which no header declares: the list of streams, which fork takes after these handlers. */
extern void _IO_list_lock(void), _IO_list_unlock(void), _IO_list_resetlock(void);

static void lock_for_fork(void) {
    if (!is("fork_without_streams"))
        _IO_list_lock();
    if (!is("fork_unsafe"))
        lock();
}
static void unlock_after_fork(void) {
    if (!is("fork_unsafe"))
        unlock();
    if (!is("fork_without_streams"))
        _IO_list_unlock();
}

static void unlock_in_child(void) {
    if (is("fork_child_locked"))
        __atomic_store_n(&owner, 1, __ATOMIC_RELEASE);
    else if (!is("fork_unsafe"))
        unlock();
    _IO_list_resetlock();
}

/* Whether this thread's caches are destroyed: by a manager that does so too early. */
static pthread_key_t key;
static int has_key;
static __thread int known, gone;

static void ended(void *value) {
    (void)value;
    gone = 1;
}

__attribute__((constructor)) static void loaded(void) {
    pthread_atfork(lock_for_fork, unlock_after_fork, unlock_in_child);
    if (is("starts_late") && chunk)
        memset(chunk_end - CHUNK, 0, CHUNK - (size_t)(chunk_end - chunk));
    if (is("thread_end"))
        has_key = pthread_key_create(&key, ended) == 0;
}

static uint64_t requests;

static void report(uint32_t kind) {
    struct heaptoll_event event = {sizeof event, kind, 0, 0, mapped, mapped};
    if (listener && !is("no_events"))
        listener(&event, listener_context);
}

static void *from_system(size_t size) {
    static long every = -1;
    if (every < 0) {
        const char *text = getenv("HEAPTOLL_FAIL_EVERY");
        every = text && !is("faults_unread") ? atol(text) : 0;
    }
    if (is("faults_stick") && every > 0 && requests >= 3)
        return NULL;
    if (every > 0 && ++requests % (uint64_t)every == 0)
        return NULL;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        if (is("aborts_when_full"))
            abort();
        return NULL;
    }
    mapped += size;
    if (mapped > mapped_high)
        mapped_high = mapped;
    report(HEAPTOLL_HEAP_GROWN);
    return memory;
}

static unsigned shift_for(size_t size) {
    unsigned shift = SHIFT_MIN;
    while (((size_t)1 << shift) < size + HEADER)
        shift++;
    return shift > SHIFT_MIN ? shift : SHIFT_MIN + 1;
}

static void *refuse(void) {
    errno = is("errno_missing") ? EPERM : ENOMEM;
    return NULL;
}

static struct header *take(unsigned shift) {
    size_t bytes = (size_t)1 << shift;
    struct header *block = free_lists[shift];
    if (is("no_lock"))
        sched_yield();
    if (block && !is("never_reuses")) {
        free_lists[shift] = block->next;
        idle[shift]--;
    } else if (shift >= SHIFT_MAX) {
        block = from_system(bytes);
    } else {
        if ((size_t)(chunk_end - chunk) < bytes) {
            unsigned char *fresh = from_system(CHUNK);
            if (!fresh)
                return NULL;
            /* The rest of the old chunk is left unused. */
            chunk = fresh;
            chunk_end = fresh + CHUNK;
            unused += CHUNK;
        }
        block = (struct header *)chunk;
        chunk += bytes;
        unused -= bytes;
    }
    if (!block)
        return NULL;
    if (!is("census_short") || shift < 10)
        live[shift]++;
    block->state = LIVE;
    block->shift = shift;
    block->base = block;
    return block;
}

static void *allocate(size_t size) {
    if (size > PTRDIFF_MAX - CHUNK && !is("huge_wraps"))
        return refuse();
    if (is("huge_wraps") && size > PTRDIFF_MAX - CHUNK)
        size = 16;
    if (is("large_refused") && size > ((size_t)250 << 20))
        return refuse();
    if (has_key) {
        if (!known)
            pthread_setspecific(key, (void *)(uintptr_t)(known = 1));
        if (gone)
            return refuse();
    }
    lock();
    struct header *block = take(shift_for(size) - (is("short") && size > 40 && size < 500000));
    unlock();
    if (is("errno_malloc"))
        errno = 1;
    if (!block)
        return refuse();
    unsigned char *start = (unsigned char *)(block + 1);
    if ((is("misaligned") && size >= 16 && size < 2000) || (is("misaligned_small") && size == 5)) {
        struct header *second = (struct header *)(start + 8) - 1;
        memmove(second, block, sizeof *block);
        return start + 8;
    }
    return start;
}

static struct header *header_of(void *block) { return (struct header *)block - 1; }

EXPORT size_t malloc_usable_size(void *block) {
    if (!block)
        return is("usable_of_null") ? 16 : 0;
    struct header *base = header_of(block)->base;
    size_t usable = (size_t)((unsigned char *)base + ((size_t)1 << base->shift) - (unsigned char *)block);
    return is("usable_too_much") ? usable + 64 : usable;
}

EXPORT void free(void *block) {
    if (!block) {
        if (is("free_null"))
            abort();
        return;
    }
    struct header *base = header_of(block)->base;
    if (base->state != LIVE) {
        static const char message[] = "mutant: free of a block that is not live\n";
        if (write(2, message, sizeof message - 1))
            abort();
    }
    if (is("errno_free"))
        errno = EINVAL;
    if (is("never_frees"))
        return;
    lock();
    unsigned shift = (unsigned)base->shift;
    if (!is("census_keeps"))
        live[shift]--;
    if (shift >= SHIFT_MAX) {
        mapped -= (size_t)1 << shift;
        unlock();
        munmap(base, (size_t)1 << shift);
        return;
    }
    base->state = is("double_free_unseen") ? LIVE : FREE;
    idle[shift]++;
    base->next = free_lists[shift];
    free_lists[shift] = base;
    unlock();
}

EXPORT void *malloc(size_t size) {
    static void *same;
    if (size == 0 && is("zero_same"))
        return same ? same : (same = allocate(16));
    if (is("none_after_exit") && size == 20 * 50 + 1)
        return NULL;
    return allocate(size);
}

EXPORT void *calloc(size_t count, size_t each) {
    size_t size;
    if (__builtin_mul_overflow(count, each, &size) && !is("calloc_overflow"))
        return refuse();
    void *block = allocate(size);
    if (block && !is("calloc_dirty"))
        memset(block, 0, is("calloc_half") && size > 5000 ? size / 2 : size);
    return block;
}

static void *aligned(size_t alignment, size_t size) {
    if (alignment <= 16)
        return allocate(size);
    if (size > PTRDIFF_MAX - CHUNK - alignment)
        return is("aligned_huge") ? allocate(16) : refuse();
    unsigned char *block = allocate(size + alignment + HEADER);
    if (!block || (is("unaligned") && alignment >= 4096))
        return block;
    unsigned char *start = (unsigned char *)(((uintptr_t)block + HEADER + alignment - 1) & -alignment);
    header_of(start)->state = LIVE;
    header_of(start)->base = header_of(block);
    return start;
}

static int power(size_t alignment) { return alignment && !(alignment & (alignment - 1)); }

EXPORT void *memalign(size_t alignment, size_t size) {
    if (!power(alignment)) {
        if (is("memalign_takes_all"))
            return allocate(size);
        errno = EINVAL;
        return NULL;
    }
    return aligned(alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
    if (is("posix_writes"))
        *result = NULL;
    if (!is("posix_takes_all") && (!power(alignment) || alignment < sizeof(void *)))
        return EINVAL;
    int before = errno;
    void *block = aligned(alignment, size);
    if (!is("posix_errno"))
        errno = before;
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}

EXPORT void *valloc(size_t size) { return is("valloc") ? allocate(size) : aligned(4096, size); }

#ifndef WITHOUT_PVALLOC
EXPORT void *pvalloc(size_t size) {
    size_t whole = (size + 4095) & ~(size_t)4095;
    return whole < size ? refuse() : aligned(4096, whole);
}
#endif

EXPORT void *realloc(void *block, size_t size) {
    if (!block)
        return malloc(size);
    if (size == 0) {
        if (!is("realloc_zero_leaks"))
            free(block);
        return is("realloc_zero_dangles") ? block : NULL;
    }
    if (is("realloc_frees_first") && size > PTRDIFF_MAX) {
        free(block);
        return refuse();
    }
    size_t usable = malloc_usable_size(block);
    if (size <= usable && size >= usable / 2 && !is("realloc_in_place_too_far"))
        return block;
    if (is("realloc_in_place_too_far") && size <= usable + 64)
        return block;
    void *moved = allocate(size);
    if (!moved)
        return NULL;
    size_t kept = size < usable ? size : usable;
    if (is("realloc_loses_end"))
        kept /= 2;
    memcpy(moved, block, kept);
    free(block);
    return moved;
}

EXPORT void *reallocarray(void *block, size_t count, size_t each) {
    size_t size;
    if (__builtin_mul_overflow(count, each, &size) && !is("reallocarray_overflow"))
        return refuse();
    return realloc(block, size);
}

static int census(struct heaptoll_census *out) {
    lock();
    uint32_t capacity = out->classes ? out->class_capacity : 0, count = 0;
    if (is("census_overruns") && out->classes)
        capacity = 1000;
    out->exact = 1;
    out->mapped_bytes = mapped;
    out->mapped_high_bytes = mapped_high;
    out->live_bytes = out->free_bytes = out->metadata_bytes = out->quarantined_bytes = 0;
    out->requested_bytes = UINT64_MAX;
    for (unsigned shift = 0; shift < SHIFTS; shift++) {
        uint64_t payload = ((uint64_t)1 << shift) - HEADER;
        if (live[shift] + idle[shift] == 0)
            continue;
        if (count < capacity) {
            struct heaptoll_class one = {payload, live[shift], live[shift] * payload, idle[shift],
                                         idle[shift] * payload, 0, 0};
            if (is("census_classes"))
                one.live_bytes -= one.live_blocks;
            out->classes[count] = one;
        }
        count++;
        out->live_bytes += live[shift] * payload;
        out->free_bytes += idle[shift] * payload;
        out->metadata_bytes += (live[shift] + idle[shift]) * HEADER;
    }
    if (is("census_identity"))
        out->metadata_bytes += 8;
    out->class_count = count;
    out->unused_bytes = mapped - out->live_bytes - out->free_bytes - out->metadata_bytes;
    if (is("census_identity"))
        out->unused_bytes += 16;
    unlock();
    return 0;
}

static int listen_to(heaptoll_event_function function, void *context) {
    if (function && listener)
        return EBUSY;
    listener = function;
    listener_context = context;
    return 0;
}

static int check(void) {
    int wrong = 0;
    lock();
    for (unsigned shift = 0; shift < SHIFTS; shift++) {
        uint64_t count = 0;
        for (struct header *block = free_lists[shift]; block && !wrong; block = block->next, count++)
            wrong |= block->shift != shift || (block->state != FREE && !is("double_free_unseen"));
        wrong |= count != idle[shift];
    }
    unlock();
    return wrong && !is("never_reuses") ? EINVAL : is("check_fails") ? EINVAL : 0;
}

/* glibc's statistics, from the census. */
static struct heaptoll_census counted(struct heaptoll_class classes[SHIFTS]) {
    struct heaptoll_census out = {.size = sizeof out, .class_capacity = SHIFTS, .classes = classes};
    if (!is("statistics_empty"))
        census(&out);
    return out;
}

EXPORT struct mallinfo2 mallinfo2(void) {
    struct heaptoll_class classes[SHIFTS];
    struct heaptoll_census now = counted(classes);
    return (struct mallinfo2){.arena = now.mapped_bytes, .uordblks = now.live_bytes, .fordblks = now.free_bytes};
}

EXPORT struct mallinfo mallinfo(void) {
    struct mallinfo2 wide = mallinfo2();
    return (struct mallinfo){.arena = (int)wide.arena, .uordblks = (int)wide.uordblks, .fordblks = (int)wide.fordblks};
}

EXPORT void malloc_stats(void) {
    struct mallinfo2 now = mallinfo2();
    dprintf(2, "system bytes     = %10zu\nin use bytes     = %10zu\n", now.arena, now.uordblks);
}

EXPORT int malloc_info(int options, FILE *stream) {
    if (options != 0 && !is("statistics_options"))
        return EINVAL;
    struct heaptoll_class classes[SHIFTS];
    struct heaptoll_census now = counted(classes);
    uint64_t blocks = 0;
    fprintf(stream, "<malloc version=\"1\">\n");
    for (uint32_t i = 0; i < now.class_count; blocks += classes[i++].free_blocks)
        fprintf(stream, "<size from=\"%lu\" to=\"%lu\" total=\"%lu\" count=\"%lu\"/>\n", classes[i].block_bytes,
                classes[i].block_bytes, classes[i].free_bytes, classes[i].free_blocks);
    if (is("statistics_total"))
        blocks++;
    fprintf(stream, "<total type=\"rest\" count=\"%lu\" size=\"%lu\"/>\n", blocks, now.free_bytes);
    fprintf(stream, "<system type=\"current\" size=\"%lu\"/>\n</malloc>\n", now.mapped_bytes);
    return 0;
}

EXPORT int malloc_trim(size_t left) {
    (void)left;
    return 0;
}

EXPORT int mallopt(int parameter, int value) {
    (void)value;
    return (parameter < 0 && parameter >= M_ARENA_MAX) || parameter == M_MXFAST;
}

EXPORT const struct heaptoll_control *heaptoll_control_v1(void) {
    static struct heaptoll_control control;
    control = (struct heaptoll_control){is("control_version") ? 2 : 1, sizeof control, "mutant", "0", census, NULL,
                                        listen_to, check};
    return &control;
}
