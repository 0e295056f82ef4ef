/* proof.h: used by every case of the proof, in addition to check.h of the conformance suite.
 *
 * A case must not itself keep alive what it declares unreachable, nor keep alive by accident what only one place should
 * keep. Addresses that it only remembers are therefore disguised, and its dead stack is scrubbed before a collection
 * counts.
 */
#ifndef PROOF_H
#define PROOF_H

#include "check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A disguised address, which no collector takes for one: its upper bits are not those of user memory. */
typedef uint64_t disguised;
static inline disguised disguise(const volatile void *address) {
    return (uint64_t)(uintptr_t)address ^ UINT64_C(0xa5a5c3c300000000);
}
static inline void *undisguise(disguised address) {
    return (void *)(uintptr_t)(address ^ UINT64_C(0xa5a5c3c300000000));
}

enum mode { NO_COLLECTOR, EXPLICIT, GUARD, HYBRID, COLLECT };
/* NO_COLLECTOR unless the manager can collect on demand; otherwise as set by TITHE_MODE, or by HEAPTOLL_SWEEP where the
 * sweep layer collects. */
enum mode mode(void);
/* Whether collections reclaim what is unreachable: HYBRID or COLLECT. Those of GUARD reclaim of it what was freed. */
int collects(void);
/* The same, or this process ends here as not applicable. */
void needs_collector(void);
/* A full collection: 0, or the errno value of the manager. Without a collector it does nothing and returns 0. */
int try_collect(void);
/* The same; EAGAIN is a failure. */
void collect(void);

/* Whether the address is that of an allocated block; -1 when the manager does not report it. */
int is_live(disguised address);
/* Writes to standard output which words keep it alive, where the manager reports them; returns the length of its
   answer. */
size_t print_why(disguised address);
/* Whether the manager supports is_live, and print_why. */
int reports_live(void);
int reports_chains(void);
/* Whether a layer collects for a manager without a collector. */
int is_layered(void);

/* Overwrites `bytes` of dead stack under the caller. */
void scrub_stack(size_t bytes);
#define SCRUB ((size_t)96 * 1024)

/* Allocates and frees blocks of many sizes, so that a block reclaimed by mistake is overwritten. */
void churn(uint64_t seed, size_t blocks);

/* A set of objects that one place keeps: `count` blocks, each labelled with its identity. */
enum { KEPT = 48 };
struct kept {
    disguised address[KEPT];
    uint32_t size[KEPT];
    uint64_t seed;
    /* Under a guard: a bit for each that was freed while the place has its address. */
    uint64_t freed;
    uint32_t count;
    const char *where;
};
/* What words point to: the beginnings of blocks, into them, or to their ends. Only guards promise to know an end. */
enum { BEGINNING, INSIDE, END };
/* Allocates them and stores their addresses to words[0] ... words[count - 1], or, with count 0, a chain of KEPT of them
 * whose head is stored to words[0]. Under a guard they are then freed, of a chain every other one. */
void keep(struct kept *kept, const char *where, void *volatile *words, uint32_t count, int pointing, uint64_t seed);
/* Collects and churns; all of them must be intact after it, those that were freed clear and handed out to nobody. */
void check_kept(const struct kept *kept);
/* The same without a collection. */
void check_whole(const struct kept *kept);
/* When no word holds them any more: collections must reclaim all but `spared` of them, or all that were freed be handed
 * out again within a bounded number of requests. */
void check_gone(struct kept *kept, uint32_t spared);

/* A function that the compiler must not inline: its frame is dead after it returns. */
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

/* Waits for `flag` to become `value` without a lock or an allocation. */
void await_flag(int *flag, int value, const char *what);
static inline void set_flag(int *flag, int value) { __atomic_store_n(flag, value, __ATOMIC_SEQ_CST); }
static inline int get_flag(int *flag) { return __atomic_load_n(flag, __ATOMIC_SEQ_CST); }

#ifdef __cplusplus
}
#endif

#endif
