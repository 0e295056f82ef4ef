/* tithe.h: Tithe called directly, by a program that links libtithe.a or libtithe.so.
 *
 * Tithe is a conservative collector for C and C++: a block stays as long as any register, stack, static or
 * thread-local datum, block of Tithe's, or other writable memory of the process holds an address in it (its first
 * byte or any further one, not the one after its end). Preloaded, libtithe.so serves malloc and free with the same
 * heap. The environment variables TITHE_* (docs/questions/tithe.md) hold for both.
 *
 * All functions may be called from any thread, not from signal handlers. Those that return an int return 0 or an error
 * number, and leave errno alone. How to link, and an example: docs/questions/tithe-api.md. Distributed under MIT or
 * Apache-2.0.
 */
#ifndef TITHE_H
#define TITHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block of at least `bytes`, aligned to 16, contents undefined. Null and ENOMEM when the system gives no more even
 * after a collection. */
void *tithe_malloc(size_t bytes);
/* As tithe_malloc, for contents without pointers: they keep nothing alive and are never read by the collector. */
void *tithe_malloc_atomic(size_t bytes);
/* As tithe_malloc, zeroed; null and ENOMEM when the product overflows. */
void *tithe_calloc(size_t count, size_t bytes);
/* As C's realloc; a pointer-free block stays one. */
void *tithe_realloc(void *block, size_t bytes);
/* Frees a block at once. In mode `collect` it does nothing. Null is allowed; a wrong address is reported once on
 * standard error and ignored. */
void tithe_free(void *block);
/* Usable bytes of a block. */
size_t tithe_usable_size(const void *block);

/* A full collection, finished on return. 0; ENOTSUP in mode `explicit`; EAGAIN when a thread did not stop, or the
 * system refused memory or /proc. */
int tithe_collect(void);

/* Words from `start` up to `end` are roots, although no mapping that Tithe reads holds them. Needed only for memory
 * that is not readable and writable at the time of a collection; pages of it that cannot even be read then are
 * skipped. 0; ENOMEM; EINVAL when `end` lies before `start`. */
int tithe_add_roots(const void *start, const void *end);
/* Removes exactly a range of tithe_add_roots. 0, or ENOENT. */
int tithe_remove_roots(const void *start, const void *end);

/* The calling thread's stack lies from `low` up to `high` in memory Tithe does not find by itself (see
 * tithe_add_roots). 0; ENOMEM; EINVAL when it is empty. Ends with the thread, or with tithe_unregister_thread; several
 * calls accumulate. */
int tithe_register_thread(const void *low, const void *high);
/* Removes all stacks that the calling thread has registered. 0, or ENOENT when there is none. */
int tithe_unregister_thread(void);

/* Counters since the start of the process. The caller sets size to sizeof(struct tithe_stats). */
struct tithe_stats {
    uint64_t size;
    uint64_t heap_bytes;         /* address space of the heap in use for small and large blocks, now */
    uint64_t heap_high_bytes;    /* address space of the heap in all, which never shrinks */
    uint64_t live_bytes;         /* in allocated blocks: what the last collection found, and what was allocated since */
    uint64_t allocated_bytes;    /* moved to thread caches or allocated as large blocks, ever */
    uint64_t collections;        /* finished */
    uint64_t abandoned;          /* collections abandoned, for example because a thread did not stop */
    uint64_t pause_total_ns;
    uint64_t pause_max_ns;
    uint64_t collected_bytes;    /* reclaimed by collections, ever */
    uint64_t blacklisted_bytes;  /* address space avoided because of words that equal addresses in it */
};
/* 0; EINVAL when `stats` is null or its size is less than that of this structure. */
int tithe_stats(struct tithe_stats *stats);

/* --- debugging: slow, since each call stops all threads ----------------------------------------------------------- */

/* 1 when the address lies in an allocated block: neither freed nor collected. Else 0. -1 when the answer is
 * unavailable, as a thread did not stop. */
int tithe_is_live(const void *address);

/* Why the block at this address is kept: writes the shortest chain of words that leads to it as lines of text, from a
 * root through blocks to the block, and a zero byte, as far as they fit in `capacity` bytes. Returns the length of the
 * whole text as snprintf does; 0 when no block is allocated there or no root leads to it, and with errno EAGAIN when
 * the answer is unavailable. A chain from the calling thread's own stack or registers is written only if there is no
 * other, since the caller holds the address itself. The environment variable TITHE_WHY=0xADDRESS has the same written
 * after each collection. */
size_t tithe_why(const void *address, char *text, size_t capacity);

/* Bytes in blocks that would be reclaimed without the words of one sort of root: what each sort holds alone. */
struct tithe_held {
    uint64_t stacks;
    uint64_t statics;
    uint64_t mappings;   /* other memory, and roots that were added */
    uint64_t registers;  /* of other threads; the calling one's count as its stack */
};
/* 0; EINVAL when `held` is null; EAGAIN when the answer is unavailable. */
int tithe_held(struct tithe_held *held);

#ifdef __cplusplus
}
#if __cplusplus >= 201103L
#define TITHE_ASSERT(condition, text) static_assert(condition, text)
#endif
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TITHE_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#ifdef TITHE_ASSERT
TITHE_ASSERT(sizeof(struct tithe_stats) == 88, "struct tithe_stats has a fixed layout");
TITHE_ASSERT(offsetof(struct tithe_stats, collections) == 40, "collections is at 40");
TITHE_ASSERT(offsetof(struct tithe_stats, blacklisted_bytes) == 80, "blacklisted_bytes is at 80");
TITHE_ASSERT(sizeof(struct tithe_held) == 32, "struct tithe_held has a fixed layout");
#undef TITHE_ASSERT
#endif

#endif
