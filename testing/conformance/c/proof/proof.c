/* proof.c: the helpers of proof.h. */
#include "proof.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heaptoll.h"

typedef int live_function(const void *);
typedef size_t why_function(const void *, char *, size_t);

static live_function *live;
static why_function *why;
static const struct heaptoll_control *manager;
static int symbols_found, layered;

/* Symbols are looked up once, before a case holds any locks or has forked. */
static void find_symbols(void) {
    if (symbols_found)
        return;
    symbols_found = 1;
    manager = control();
    /* In front of Tithe the layer is queried: Tithe may have reused blocks that the layer has reclaimed. */
    layered = manager && (strcmp(manager->name, "sweep") == 0 || strcmp(manager->name, "guard") == 0);
    void *symbol = dlsym(RTLD_DEFAULT, layered ? "heaptoll_sweep_is_live" : "tithe_is_live");
    memcpy(&live, &symbol, sizeof live);
    symbol = layered ? NULL : dlsym(RTLD_DEFAULT, "tithe_why");
    memcpy(&why, &symbol, sizeof why);
}

__attribute__((constructor)) static void find_symbols_early(void) { find_symbols(); }

enum mode mode(void) {
    find_symbols();
    if (!manager || !manager->collect)
        return NO_COLLECTOR;
    if (strcmp(manager->name, "guard") == 0)
        return GUARD;
    if (layered) {
        const char *layer = getenv("HEAPTOLL_SWEEP");
        return layer && strstr(layer, "free=honour") ? HYBRID : COLLECT;
    }
    const char *value = getenv("TITHE_MODE");
    if (value && strcmp(value, "explicit") == 0)
        return EXPLICIT;
    if (value && strcmp(value, "guard") == 0)
        return GUARD;
    return value && strcmp(value, "collect") == 0 ? COLLECT : HYBRID;
}

int collects(void) { return mode() >= HYBRID; }

void needs_collector(void) {
    if (!collects())
        not_applicable("it does not collect");
}

int try_collect(void) {
    find_symbols();
    if (!manager || !manager->collect)
        return 0;
    return manager->collect();
}

void collect(void) {
    int status = try_collect();
    if (mode() == EXPLICIT)
        CHECK(status == ENOTSUP, "collect answered %d in mode explicit instead of ENOTSUP", status);
    else
        CHECK(status == 0, "collect answered %d", status);
}

int reports_live(void) {
    find_symbols();
    return live != NULL;
}

int is_layered(void) {
    find_symbols();
    return layered;
}

int is_live(disguised address) {
    find_symbols();
    return live ? live(undisguise(address)) : -1;
}

int reports_chains(void) {
    find_symbols();
    return why != NULL;
}

size_t print_why(disguised address) {
    static char text[4096];
    find_symbols();
    if (!why)
        return 0;
    size_t length = why(undisguise(address), text, sizeof text);
    if (length) {
        if (length >= sizeof text)
            length = sizeof text - 1;
        text[length] = 0;
        note("held: %.900s", text);
    }
    return length;
}

APART void scrub_stack(size_t bytes) {
    volatile char *frame = alloca(bytes);
    for (size_t i = 0; i < bytes; i++)
        frame[i] = 0;
    __asm__ volatile("" : : "r"(frame) : "memory");
}

APART void churn(uint64_t seed, size_t blocks) {
    enum { HELD = 64 };
    void *held[HELD] = {NULL};
    struct rng rng = {seed * 2 + 1};
    for (size_t i = 0; i < blocks; i++) {
        size_t at = rng_below(&rng, HELD), size = 1 + rng_below(&rng, (size_t)32 << rng_below(&rng, 8));
        free(held[at]);
        held[at] = malloc(size);
        CHECK(held[at], "malloc(%zu) gave null", size);
        memset(held[at], 0xee, size);
    }
    for (size_t at = 0; at < HELD; at++) {
        free(held[at]);
        held[at] = NULL;
    }
    hidden_pointer(held);
}

/* The beginning of every kept block. */
struct label {
    struct label *next;
    uint64_t seed;
    uint32_t size, at;
};
static const uint32_t KEPT_SIZES[] = {32, 48, 64, 100, 200, 512, 1000, 2048, 5000, 33000, 70000, 300000};
enum { INTERIOR = 25 };

static uint32_t kept_size(uint32_t at) {
    /* Most are small, some large. */
    return KEPT_SIZES[at % (at % 16 == 15 ? 12 : 9)];
}

/* A word that points to a block. */
static void *word_to(struct label *label, int pointing) {
    return (char *)label + (pointing == END ? label->size : pointing == INSIDE ? INTERIOR : 0);
}

static void free_kept(struct kept *kept, uint32_t step) {
    for (uint32_t at = 0; at < kept->count; at += step)
        if (!(kept->freed & (uint64_t)1 << at))
            free(undisguise(kept->address[at]));
    for (uint32_t at = 0; at < kept->count; at += step)
        kept->freed |= (uint64_t)1 << at;
}

APART void keep(struct kept *kept, const char *where, void *volatile *words, uint32_t count, int pointing,
                uint64_t seed) {
    int chain = count == 0;
    kept->freed = 0;
    CHECK(count <= KEPT, "at most %d can be kept", KEPT);
    kept->count = chain ? KEPT : count;
    kept->seed = seed;
    kept->where = where;
    struct label *last = NULL;
    for (uint32_t at = 0; at < kept->count; at++) {
        uint32_t size = kept_size(at);
        struct label *label = malloc(size);
        CHECK(label, "malloc(%u) gave null", size);
        *label = (struct label){NULL, seed, size, at};
        fill(label + 1, size - sizeof *label, seed + at);
        kept->address[at] = disguise(label);
        kept->size[at] = size;
        if (!chain)
            words[at] = word_to(label, pointing);
        else if (!last)
            words[0] = word_to(label, pointing);
        else
            last->next = word_to(label, pointing);
        last = label;
    }
    last = NULL;
    hidden_pointer(&last);
    /* A block that is freed is clear and keeps nothing: of a chain each second one is left, which holds the next. */
    if (mode() == GUARD)
        free_kept(kept, chain ? 2 : 1);
}

/* Bytes that are requested for each kept block at most. */
#define SOUGHT ((size_t)16 << 20)

/* Requests blocks of the sizes of kept ones, up to a number: a bit for each kept one in whose place one lies. */
APART static uint64_t handed_out(const struct kept *kept, size_t requests) {
    uint64_t seen = 0;
    for (uint32_t wanted = 0; wanted < kept->count; wanted++) {
        size_t size = kept->size[wanted];
        void **chain = NULL;
        for (size_t i = 0; i < requests && i * size < SOUGHT && !(seen & (uint64_t)1 << wanted); i++) {
            void **block = malloc(size);
            if (!block)
                break;
            *block = chain;
            chain = block;
            uintptr_t from = (uintptr_t)block;
            for (uint32_t at = 0; at < kept->count; at++) {
                uintptr_t of = (uintptr_t)undisguise(kept->address[at]);
                if (from < of + kept->size[at] && of < from + size)
                    seen |= (uint64_t)1 << at;
            }
        }
        while (chain) {
            void **next = *chain;
            free(chain);
            chain = next;
        }
    }
    return seen;
}

static int is_clear(const unsigned char *bytes, size_t size) {
    const char *setting = getenv("TITHE_CLEAR");
    while (size && bytes[size - 1] == 0)
        size--;
    return !size || (setting && strcmp(setting, "off") == 0);
}

APART void check_whole(const struct kept *kept) {
    int answer = 1;
    for (uint32_t at = 0; at < kept->count; at++) {
        disguised address = kept->address[at];
        /* Where a thread does not stop there is no answer, and each question waits for it in vain. */
        if (answer != -1)
            answer = is_live(address);
        CHECK(answer != 0, "%s: block %u of %u, %u bytes, was reclaimed although it is held", kept->where, at,
              kept->count, kept->size[at]);
        const struct label *label = undisguise(address);
        if (kept->freed & (uint64_t)1 << at) {
            CHECK(is_clear((const void *)label, kept->size[at]), "%s: freed block %u of %u, %u bytes at %p, is not clear",
                  kept->where, at, kept->count, kept->size[at], (const void *)label);
            continue;
        }
        CHECK(label->seed == kept->seed && label->size == kept->size[at] && label->at == at,
              "%s: block %u of %u, %u bytes at %p, was overwritten although it is held", kept->where, at, kept->count,
              kept->size[at], (const void *)label);
        check_filled(label + 1, label->size - sizeof *label, kept->seed + at, kept->where);
    }
}

APART void check_kept(const struct kept *kept) {
    for (int round = 0; round < 2; round++) {
        collect();
        if (kept->freed) {
            /* Before others take such a block and free it, which makes it clear again. */
            check_whole(kept);
            uint64_t seen = handed_out(kept, effort(200000, 800) / kept->count);
            CHECK(!seen, "%s: freed blocks %#llx of %u were handed out although they are held", kept->where,
                  (unsigned long long)seen, kept->count);
            scrub_stack(SCRUB);
        }
        churn(kept->seed + (uint64_t)round, 300);
        check_whole(kept);
    }
}

/* Most places are handed out again. The place of a large block may go back to the system, a single block may lie in a
 * span that has no turn, and a manager behind a layer decides by itself. */
static void check_reused(const struct kept *kept) {
    if (layered)
        return;
    uint64_t seen = handed_out(kept, SOUGHT);
    CHECK((uint32_t)__builtin_popcountll(seen) * 4 >= kept->count * 3,
          "%s: of %u blocks that no word holds only %#llx are handed out again", kept->where, kept->count,
          (unsigned long long)seen);
}

APART void check_gone(struct kept *kept, uint32_t spared) {
    if (mode() < GUARD || !reports_live())
        return;
    if (mode() == GUARD)
        free_kept(kept, 1);
    scrub_stack(SCRUB);
    collect();
    scrub_stack(SCRUB);
    collect();
    uint32_t left = 0;
    for (uint32_t at = 0; at < kept->count; at++)
        if (is_live(kept->address[at]) > 0 && left++ < 4 && mode() != GUARD)
            CHECK(print_why(kept->address[at]) > 0 || !reports_chains(), "%s: a block is kept and no chain explains it",
                  kept->where);
    if (mode() == GUARD)
        check_reused(kept);
    /* A manager without a collector leaves addresses of its blocks on stacks and in the C library's data: single blocks
     * may be kept, and what they hold. stress_graph measures the total. */
    if (left > spared && layered) {
        note("%s: %u of %u blocks are kept", kept->where, left, kept->count);
        return;
    }
    /* All these blocks are free in mode guard: what a stack in a mapping has left below its frames holds some. */
    uint32_t most = mode() == GUARD && spared < kept->count / 16 ? kept->count / 16 : spared;
    CHECK(left <= most, "%s: %u of %u blocks are kept although no word holds them", kept->where, left,
          kept->count);
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void wait_ms(unsigned ms) {
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0)
        CHECK(errno == EINTR, "nanosleep: errno %d", errno);
}

pthread_t start_thread(void *(*function)(void *), void *argument) {
    pthread_t thread;
    int status = pthread_create(&thread, NULL, function, argument);
    CHECK(status == 0, "pthread_create: %d", status);
    return thread;
}

void join_thread(pthread_t thread) {
    int status = pthread_join(thread, NULL);
    CHECK(status == 0, "pthread_join: %d", status);
}

void reap(int child, unsigned seconds, const char *whose) {
    CHECK(child > 0, "%s: cannot be started: errno %d", whose, errno);
    uint64_t end = now_ns() + seconds * UINT64_C(1000000000);
    int status = 0;
    for (;;) {
        int found = waitpid(child, &status, WNOHANG);
        CHECK(found >= 0 || errno == EINTR, "%s: waitpid: errno %d", whose, errno);
        if (found == child)
            break;
        CHECK(now_ns() < end, "%s hung: not done after %u s", whose, seconds);
        wait_ms(1);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with wait status %#x", whose, (unsigned)status);
}

size_t setting(const char *name, size_t otherwise) {
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

void await_flag(int *flag, int value, const char *what) {
    uint64_t end = now_ns() + UINT64_C(20000000000);
    while (get_flag(flag) != value) {
        CHECK(now_ns() < end, "%s: not within 20 s", what);
        struct timespec interval = {0, 200000};
        nanosleep(&interval, NULL);
    }
}
