/* proof.h: what every case of the proof uses, beside check.h of the conformance suite.
 *
 * A case must not itself keep alive what it says is unreachable, nor by accident keep alive what it wants to see kept
 * by one place only. Addresses that it only remembers are therefore disguised, and what it leaves on its stack is
 * scrubbed before a collection counts.
 */
#ifndef PROOF_H
#define PROOF_H

#include "check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An address that no collector takes for one: its upper bits are no user address. */
typedef uint64_t disguised;
static inline disguised disguise(const volatile void *address) {
    return (uint64_t)(uintptr_t)address ^ UINT64_C(0xa5a5c3c300000000);
}
static inline void *undisguise(disguised address) {
    return (void *)(uintptr_t)(address ^ UINT64_C(0xa5a5c3c300000000));
}

enum mode { NO_COLLECTOR, EXPLICIT, HYBRID, COLLECT };
/* NO_COLLECTOR unless the manager can collect on demand; which of the others is told by TITHE_MODE, or by
 * HEAPTOLL_SWEEP where the sweep layer collects. */
enum mode mode(void);
/* Whether collections happen at all: HYBRID or COLLECT. */
int collects(void);
/* The same, or this process ends here as not asked. */
void needs_collector(void);
/* A full collection: 0, or the errno value of the manager. Without a collector nothing, and 0. */
int try_collect(void);
/* The same; EAGAIN is a failure. */
void collect(void);

/* Whether the address is that of a block that is handed out; -1 when the manager does not tell. */
int is_live(disguised address);
/* Writes to standard output which words keep it alive, where the manager tells; the length of its answer. */
size_t print_why(disguised address);
/* Whether the manager answers is_live, and print_why. */
int tells_live(void);
int tells_why(void);
/* Whether a layer collects for a manager that knows nothing of it. */
int is_layered(void);

/* Overwrites `bytes` of dead stack under the caller. */
void scrub_stack(size_t bytes);
#define SCRUB ((size_t)96 * 1024)

/* Allocates and frees blocks of many sizes, so that a block lost is a block overwritten. */
void churn(uint64_t seed, size_t blocks);

/* A set of objects that one place keeps: `count` blocks, each of which says who it is. */
enum { KEPT = 48 };
struct kept {
    disguised address[KEPT];
    uint32_t size[KEPT];
    uint64_t seed;
    uint32_t count;
    const char *where;
};
/* Allocates them and stores their addresses to words[0] ... words[count - 1], or, with count 0, a chain of KEPT of them
 * whose head is stored to words[0]. With `interior` the words point into the blocks, not to their beginnings. */
void keep(struct kept *kept, const char *where, void *volatile *words, uint32_t count, int interior, uint64_t seed);
/* Collects and churns; all of them are whole after it. */
void check_kept(const struct kept *kept);
/* The same without a collection: what is there now. */
void check_whole(const struct kept *kept);
/* When nothing holds them any more: collections reclaim all but `spared` of them. */
void check_gone(const struct kept *kept, uint32_t spared);

/* A function that the compiler must not inline: its frame is dead when it has returned. */
#define APART __attribute__((noinline, noclone))

uint64_t now_ns(void);
void wait_ms(unsigned ms);
/* Starts a thread, or fails. */
#include <pthread.h>
pthread_t start_thread(void *(*function)(void *), void *argument);
void join_thread(pthread_t thread);
/* Waits for a child of fork: it ended with status 0 within the time. */
void reap(int child, unsigned seconds, const char *whose);
/* A number from the environment, or the default. */
size_t setting(const char *name, size_t otherwise);

/* Threads that wait for `flag` to become `value` do so by this: no lock, no allocation. */
void await_flag(int *flag, int value, const char *what);
static inline void set_flag(int *flag, int value) { __atomic_store_n(flag, value, __ATOMIC_SEQ_CST); }
static inline int get_flag(int *flag) { return __atomic_load_n(flag, __ATOMIC_SEQ_CST); }

#ifdef __cplusplus
}
#endif

#endif
