/* fork.c: a threaded program forks while its other threads allocate. The child has one thread, and locks held by others
 * stay held unless the manager handles fork. */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 3, INHERITED = 200 };
/* Seconds that a child may take before it counts as hung: it needs milliseconds. */
#define PATIENCE ((unsigned)effort(60, 30))

/* Bytes that the workers may still allocate: bounded, since one manager never frees. */
static long allowance;
static int stop;

static void *allocates(void *argument) {
    struct rng rng = {(uint64_t)(uintptr_t)argument + 11};
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&allowance, __ATOMIC_RELAXED) <= 0) {
            sched_yield();
            continue;
        }
        void *blocks[8];
        long sum = 0;
        for (int i = 0; i < 8; i++) {
            size_t size = 1 + rng_below(&rng, i == 7 ? 3000 : 60);
            sum += (long)size;
            blocks[i] = malloc(size);
            CHECK(blocks[i], "malloc gave null while another thread forks");
            fill(blocks[i], size, size);
        }
        for (int i = 0; i < 8; i++)
            free(blocks[i]);
        __atomic_fetch_sub(&allowance, sum, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void use_heap(uint64_t seed) {
    struct rng rng = {seed};
    void *blocks[64] = {NULL};
    size_t sizes[64];
    for (int i = 0; i < 200; i++) {
        size_t at = rng_below(&rng, 64);
        if (blocks[at])
            check_filled(blocks[at], sizes[at], at, "a block in a child of fork");
        free(blocks[at]);
        sizes[at] = 1 + rng_below(&rng, i % 50 ? 500 : 200000);
        blocks[at] = malloc(sizes[at]);
        CHECK(blocks[at], "malloc(%zu) gave null in a child of fork", sizes[at]);
        fill(blocks[at], sizes[at], at);
    }
    for (size_t at = 0; at < 64; at++)
        free(blocks[at]);
}

static void reap(pid_t child, const char *whose) {
    int status;
    CHECK(child > 0, "cannot fork: errno %d", errno);
    while (waitpid(child, &status, 0) < 0)
        CHECK(errno == EINTR, "waitpid: errno %d", errno);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fail("%s hung: not done after %u s", whose, PATIENCE);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with wait status %#x", whose, (unsigned)status);
}

static void *inherited[INHERITED];

static void inherit(void) {
    for (size_t i = 0; i < INHERITED; i++) {
        inherited[i] = malloc(8 + i * 5);
        CHECK(inherited[i], "malloc gave null");
        fill(inherited[i], 8 + i * 5, i);
    }
}

static void child_of_fork(uint64_t seed) {
    alarm(PATIENCE);
    use_heap(seed);
    for (size_t i = 0; i < INHERITED; i++) {
        check_filled(inherited[i], 8 + i * 5, i, "a block of the parent in a child of fork");
        if (i % 2)
            inherited[i] = realloc(inherited[i], 8 + i * 9);
        free(inherited[i]);
    }
    pid_t grandchild = fork();
    if (grandchild == 0) {
        alarm(PATIENCE);
        use_heap(seed + 1);
        _exit(0);
    }
    reap(grandchild, "a grandchild");
    /* Walking the heap takes long where nothing is ever reused. */
    if (seed % 20 == 1)
        check_heap("in a child of fork");
    _exit(0);
}

CASE(PLAIN, fork_threaded, "fork while other threads allocate: the child allocates, frees the parent's, forks again") {
    pthread_t workers[WORKERS];
    size_t forks = effort(400, 60);
    inherit();
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&workers[i], NULL, allocates, (void *)i) == 0, "pthread_create failed");
    struct rng rng = {99};
    for (size_t i = 0; i < forks; i++) {
        __atomic_store_n(&allowance, 200000, __ATOMIC_RELAXED);
        /* Lets the workers reach the fork at a different point each time. */
        struct timespec some = {0, (long)rng_below(&rng, 200000)};
        nanosleep(&some, NULL);
        pid_t child = fork();
        if (child == 0)
            child_of_fork(i + 1);
        reap(child, "a child");
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    for (size_t i = 0; i < INHERITED; i++) {
        check_filled(inherited[i], 8 + i * 5, i, "a block of the parent after its children changed theirs");
        free(inherited[i]);
    }
}

/* Handlers of pthread_atfork that allocate. Prepare handlers run in the reverse order of registration: main's before
 * those of a manager that registered when it was loaded, a library's constructor's (early.c) perhaps after them,
 * when the manager already holds its locks. */
static void *from_prepare;
static int handled;

static void prepare(void) {
    from_prepare = malloc(300);
    CHECK(from_prepare, "malloc gave null in a prepare handler");
    fill(from_prepare, 300, 3);
}

static void after(void) {
    check_filled(from_prepare, 300, 3, "a block of a prepare handler");
    void *own = malloc(5000);
    CHECK(own, "malloc gave null in a handler after fork");
    free(from_prepare);
    free(own);
    handled++;
}

static void forks_with_threads(size_t forks) {
    pthread_t workers[WORKERS];
    inherit();
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&workers[i], NULL, allocates, (void *)i) == 0, "pthread_create failed");
    for (size_t i = 0; i < forks; i++) {
        __atomic_store_n(&allowance, 200000, __ATOMIC_RELAXED);
        /* The parent itself may hang in fork. */
        alarm(PATIENCE);
        pid_t child = fork();
        if (child == 0)
            child_of_fork(i + 1);
        reap(child, "a child");
    }
    alarm(0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
}

CASE(PLAIN, fork_handlers, "prepare, parent and child handlers of the program allocate and free") {
    CHECK(pthread_atfork(prepare, after, after) == 0, "pthread_atfork failed");
    size_t forks = effort(100, 20);
    forks_with_threads(forks);
    CHECK((size_t)handled == forks, "the parent's handler ran %d times for %zu forks", handled, forks);
}

extern void early_handlers(void (*prepare)(void), void (*after)(void));

CASE(PLAIN, fork_handlers_of_library, "the same from a library that registered them before the manager was set up") {
    early_handlers(prepare, after);
    size_t forks = effort(100, 20);
    forks_with_threads(forks);
    CHECK((size_t)handled == forks, "the parent's handler ran %d times for %zu forks", handled, forks);
}

static int inside;

static void forks_inside(void) {
    if (inside++)
        return;
    void *block = malloc(1000);
    CHECK(block, "malloc gave null in a prepare handler");
    fill(block, 1000, 4);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        use_heap(5);
        check_filled(block, 1000, 4, "a block of a prepare handler, in the child forked by it");
        free(block);
        _exit(0);
    }
    reap(child, "a child forked by a prepare handler");
    free(block);
}

CASE(PLAIN, fork_in_handler, "a prepare handler that allocates and forks itself") {
    CHECK(pthread_atfork(forks_inside, NULL, NULL) == 0, "pthread_atfork failed");
    size_t forks = effort(50, 10);
    inherit();
    pthread_t worker;
    CHECK(pthread_create(&worker, NULL, allocates, NULL) == 0, "pthread_create failed");
    for (size_t i = 0; i < forks; i++) {
        inside = 0;
        __atomic_store_n(&allowance, 200000, __ATOMIC_RELAXED);
        alarm(PATIENCE);
        pid_t child = fork();
        if (child == 0)
            child_of_fork(i + 1);
        reap(child, "a child");
    }
    alarm(0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(worker, NULL);
}
