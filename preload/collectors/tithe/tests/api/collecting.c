/* collecting.c: what a collection reclaims and what it keeps. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void *volatile statics[SEVERAL];
static _Atomic int turn;

static NOINLINE void keep_in(void *volatile *place) {
    for (int at = 0; at < SEVERAL; at++) place[at] = shown(hidden[at]);
    wipe();
}

static NOINLINE void forget_in(void *volatile *place) {
    for (int at = 0; at < SEVERAL; at++) place[at] = NULL;
}

void case_collect(void) {
    errno = 99;
    make_several(48, 0);
    keep_in(statics);
    CHECK(tithe_collect() == 0);
    CHECK(live_of_several() == SEVERAL);
    for (int at = 0; at < SEVERAL; at++) CHECK(((unsigned char *)statics[at])[47] == 0x55);
    forget_in(statics);
    wipe();
    CHECK(tithe_collect() == 0);
    CHECK(live_of_several() <= SEVERAL - NEARLY_ALL);
    CHECK(errno == 99);
}

void case_explicit(void) {
    errno = 99;
    make_several(48, 0);
    CHECK(tithe_collect() == ENOTSUP);
    CHECK(live_of_several() == SEVERAL && errno == 99);
}

/* Blocks that are held only by words in a block. */
static NOINLINE int live_of_pointed_to(int atomic, int grown) {
    size_t bytes = SEVERAL * sizeof(void *);
    void *volatile *volatile place = atomic ? tithe_malloc_atomic(bytes) : tithe_malloc(bytes);
    if (grown) place = tithe_realloc((void *)place, bytes = 8 * bytes);
    CHECK(place);
    memset((void *)place, 0, bytes);
    make_several(48, 0);
    keep_in(place);
    CHECK(tithe_collect() == 0);
    CHECK(tithe_is_live((void *)place) == 1);
    int live = live_of_several();
    statics[0] = (void *)place;
    return live;
}

void case_atomic(void) {
    CHECK(live_of_pointed_to(0, 0) == SEVERAL);
    CHECK(live_of_pointed_to(0, 1) == SEVERAL);
    CHECK(live_of_pointed_to(1, 0) <= SEVERAL - NEARLY_ALL);
    CHECK(live_of_pointed_to(1, 1) <= SEVERAL - NEARLY_ALL);
}

static void *frees_several(void *nothing) {
    for (int at = 0; at < SEVERAL; at++) tithe_free(shown(hidden[at]));
    turn = 1;
    while (turn == 1) usleep(1000);
    return nothing;
}

/* Blocks in another thread's cache are not live. */
static void free_elsewhere(void) {
    make_several(48, 0);
    keep_in(statics);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, frees_several, NULL) == 0);
    while (turn == 0) usleep(1000);
    CHECK(live_of_several() == (frees() ? 0 : SEVERAL));
    CHECK(tithe_collect() == 0);
    CHECK(live_of_several() == (frees() ? 0 : SEVERAL));
    turn = 2;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(live_of_several() == (frees() ? 0 : SEVERAL));
}

void case_live(void) {
    free_elsewhere();
    char *small = tithe_malloc(100), *large = tithe_malloc(100000);
    CHECK(tithe_is_live(small) == 1 && tithe_is_live(small + 99) == 1);
    CHECK(tithe_is_live(large) == 1 && tithe_is_live(large + 99999) == 1);
    CHECK(tithe_is_live(large + whole_size(large)) == 0);
    CHECK(tithe_is_live(NULL) == 0 && tithe_is_live(&small) == 0 && tithe_is_live(case_live) == 0);
    CHECK(tithe_is_live((void *)UINTPTR_MAX) == 0);
    tithe_free(small);
    tithe_free(large);
    if (!frees()) {
        CHECK(tithe_is_live(small) == 1 && tithe_is_live(large) == 1);
        return;
    }
    CHECK(tithe_is_live(small) == 0 && tithe_is_live(small + 50) == 0);
    CHECK(tithe_is_live(large) == 0 && tithe_is_live(large + 50000) == 0);
    char *again = tithe_malloc(100);
    CHECK(again == small && tithe_is_live(again) == 1);
    /* The adjacent blocks came with it from the heap and are in the cache. */
    CHECK(tithe_is_live(again + whole_size(again)) + tithe_is_live(again - 1) <= 1);
}

static void *blocks_every_signal(void *nothing) {
    /* A raw system call also blocks the signals that the C library reserves. */
    uint64_t all = UINT64_MAX;
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8) == 0);
    turn = 1;
    while (turn == 1) usleep(1000);
    return nothing;
}

/* With TITHE_PATIENCE=100. */
void case_unstoppable(void) {
    make_several(48, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, blocks_every_signal, NULL) == 0);
    while (turn == 0) usleep(1000);
    errno = 99;
    CHECK(tithe_collect() == EAGAIN);
    CHECK(errno == 99);
    CHECK(tithe_is_live(shown(hidden[0])) == -1);
    char text[64] = "untouched";
    CHECK(tithe_why(shown(hidden[0]), text, sizeof text) == 0 && errno == EAGAIN);
    struct tithe_held held;
    errno = 99;
    CHECK(tithe_held(&held) == EAGAIN && errno == 99);
    struct tithe_stats stats = {.size = sizeof stats};
    CHECK(tithe_stats(&stats) == 0 && stats.collections == 0 && stats.abandoned >= 1);
    turn = 2;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(tithe_collect() == 0);
    CHECK(live_of_several() <= SEVERAL - NEARLY_ALL);
}

/* A page that Tithe does not read by itself: one of a file with a name, mapped privately and read-only. */
static void *volatile *unseen_page(int file) {
    CHECK(ftruncate(file, 4096) == 0);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(page != MAP_FAILED);
    return page;
}

static NOINLINE void write_hidden(int file) {
    static uintptr_t turned[SEVERAL];
    for (int at = 0; at < SEVERAL; at++) turned[at] = ~hidden[at];
    CHECK(pwrite(file, turned, sizeof turned, 0) == sizeof turned);
    memset(turned, 0, sizeof turned);
    __asm__ volatile("" : : "r"(turned) : "memory");
    wipe();
}

static char names[2][32];
static int files;

static void remove_files(void) {
    while (files > 0) unlink(names[--files]);
}

int named_file(void) {
    if (files == 0) atexit(remove_files);
    int file = mkstemp(strcpy(names[files++], "/tmp/tithe-roots-XXXXXX"));
    CHECK(file >= 0);
    return file;
}

void case_roots(void) {
    int file = named_file();
    void *volatile *page = unseen_page(file);
    const char *start = (const char *)page, *end = start + SEVERAL * sizeof(void *);
    errno = 99;
    CHECK(tithe_add_roots(end, start) == EINVAL);
    CHECK(tithe_remove_roots(start, end) == ENOENT);

    make_several(48, 0);
    write_hidden(file);
    CHECK(tithe_add_roots(start, end) == 0);
    CHECK(tithe_collect() == 0 && live_of_several() == SEVERAL);
    /* Exactly the added range is removed. */
    CHECK(tithe_remove_roots(start, end - 8) == ENOENT);
    CHECK(tithe_collect() == 0 && live_of_several() == SEVERAL);
    CHECK(tithe_remove_roots(start, end) == 0);
    CHECK(tithe_remove_roots(start, end) == ENOENT);
    CHECK(tithe_collect() == 0 && live_of_several() <= SEVERAL - NEARLY_ALL);

    /* Whole words only: the first and the last are cut. */
    make_several(48, 0);
    write_hidden(file);
    CHECK(tithe_add_roots(start + 1, end - 1) == 0);
    CHECK(tithe_collect() == 0);
    for (int at = 1; at < SEVERAL - 1; at++) CHECK(tithe_is_live(shown(hidden[at])) == 1);
    CHECK(tithe_remove_roots(start + 1, end - 1) == 0);

    /* Added twice, removed twice. */
    CHECK(tithe_add_roots(start, end) == 0 && tithe_add_roots(start, end) == 0);
    CHECK(tithe_add_roots(start, start) == 0 && tithe_remove_roots(start, start) == 0);
    CHECK(tithe_remove_roots(start, end) == 0 && tithe_remove_roots(start, end) == 0);
    CHECK(tithe_remove_roots(start, end) == ENOENT);

    /* The program may unmap the memory without removing the root. */
    char *gone = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED);
    CHECK(tithe_add_roots(gone, gone + 3 * 4096) == 0);
    CHECK(mprotect(gone, 4096, PROT_NONE) == 0 && munmap(gone + 4096, 4096) == 0);
    CHECK(tithe_add_roots(NULL, (void *)4096) == 0);
    CHECK(tithe_add_roots((void *)(UINTPTR_MAX - 5000), (void *)UINTPTR_MAX) == 0);
    CHECK(tithe_collect() == 0);
    make_several(48, 0);
    memcpy(gone + 2 * 4096, &(void *){shown(hidden[7])}, sizeof(void *));
    wipe();
    CHECK(tithe_collect() == 0 && tithe_is_live(shown(hidden[7])) == 1);
    CHECK(errno == 99);
}

static const char *stack_low, *stack_high;

static void *registers(void *nothing) {
    CHECK(tithe_unregister_thread() == ENOENT);
    CHECK(tithe_register_thread(stack_high, stack_low) == EINVAL);
    CHECK(tithe_register_thread(stack_low, stack_low) == EINVAL);
    CHECK(tithe_register_thread(stack_low, stack_low + 400) == 0);
    CHECK(tithe_unregister_thread() == 0);
    CHECK(tithe_unregister_thread() == ENOENT);
    /* Several add up. */
    CHECK(tithe_register_thread(stack_low, stack_low + 400) == 0);
    CHECK(tithe_register_thread(stack_low + 400, stack_high) == 0);
    turn = 1;
    while (turn == 1) usleep(1000);
    return nothing;
}

void case_threads(void) {
    int file = named_file();
    stack_low = (const char *)unseen_page(file);
    stack_high = stack_low + SEVERAL * sizeof(void *);
    make_several(48, 0);
    write_hidden(file);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, registers, NULL) == 0);
    while (turn == 0) usleep(1000);
    /* Another thread's are not this one's. */
    CHECK(tithe_unregister_thread() == ENOENT);
    CHECK(tithe_remove_roots(stack_low, stack_low + 400) == ENOENT);
    CHECK(tithe_collect() == 0 && live_of_several() == SEVERAL);
    turn = 2;
    CHECK(pthread_join(thread, NULL) == 0);
    wipe();
    CHECK(tithe_collect() == 0);
    CHECK(live_of_several() <= SEVERAL - NEARLY_ALL);
}

/* The child keeps its own thread's stack, and loses those of the threads that fork did not copy. */
void case_fork(void) {
    int file = named_file(), other = named_file();
    const char *mine = (const char *)unseen_page(other);
    stack_low = (const char *)unseen_page(file);
    stack_high = stack_low + SEVERAL * sizeof(void *);
    static uintptr_t first[SEVERAL];
    make_several(48, 0);
    write_hidden(other);
    memcpy(first, hidden, sizeof first);
    CHECK(tithe_register_thread(mine, mine + SEVERAL * sizeof(void *)) == 0);
    make_several(48, 0);
    write_hidden(file);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, registers, NULL) == 0);
    while (turn == 0) usleep(1000);
    wipe();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        wipe();
        CHECK(tithe_collect() == 0);
        CHECK(live_of_several() <= SEVERAL - NEARLY_ALL);
        memcpy(hidden, first, sizeof first);
        CHECK(live_of_several() == SEVERAL);
        CHECK(tithe_unregister_thread() == 0);
        CHECK(tithe_collect() == 0 && live_of_several() <= SEVERAL - NEARLY_ALL);
        for (int at = 0; at < 100000; at++) CHECK(tithe_malloc(at % 2000));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(tithe_collect() == 0 && live_of_several() == SEVERAL);
    turn = 2;
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Two heaps in a process, or one under both names: blocks of each that are held only by blocks of the other. */
static void *exchanges(void *seed) {
    unsigned random = (unsigned)(uintptr_t)seed;
    void **chain = NULL;
    for (int at = 0; at < 60000; at++) {
        random = random * 1103515245 + 12345;
        size_t bytes = 2 * sizeof(void *) + (random >> 16) % 500;
        void **block = at % 2 ? malloc(bytes) : tithe_malloc(bytes);
        CHECK(block);
        memset(block, (int)(uintptr_t)seed, bytes);
        block[0] = chain;
        ((size_t *)block)[1] = bytes;
        chain = block;
        if (at % 500 == 499) {
            int length = 0;
            for (void **node = chain; node; node = node[0], length++)
                for (size_t byte = 2 * sizeof(void *); byte < ((size_t *)node)[1]; byte++)
                    CHECK(((unsigned char *)node)[byte] == (unsigned char)(uintptr_t)seed);
            CHECK(length == 500);
            while (chain) {
                void **block = chain;
                chain = block[0];
                if (length-- % 2 == 0) free(block);
            }
        }
        if (at % 20000 == 19999) CHECK(tithe_collect() == 0);
    }
    return NULL;
}

void case_neighbours(void) {
    pthread_t threads[3];
    for (int at = 0; at < 3; at++) CHECK(pthread_create(&threads[at], NULL, exchanges, (void *)(uintptr_t)(at + 1)) == 0);
    for (int at = 0; at < 3; at++) CHECK(pthread_join(threads[at], NULL) == 0);
    struct tithe_stats stats = {.size = sizeof stats};
    CHECK(tithe_stats(&stats) == 0 && stats.collections >= 9 && stats.abandoned == 0);
}

/* All calls that stop the world, at the same time. */
static void *queries(void *nothing) {
    static char text[3][4096];
    static _Atomic int next;
    int mine = next++ % 3;
    for (int at = 0; at < 60; at++) {
        void *volatile block = tithe_malloc(100);
        struct tithe_held held;
        CHECK(tithe_is_live(block) == 1);
        CHECK(tithe_why(block, text[mine], sizeof *text) > 0);
        if (at % 10 == 0) CHECK(tithe_held(&held) == 0);
        if (at % 10 == 5) CHECK(tithe_collect() == 0);
        CHECK(tithe_is_live(block) == 1);
        tithe_free(block);
        struct tithe_stats stats = {.size = sizeof stats};
        CHECK(tithe_stats(&stats) == 0);
    }
    return nothing;
}

void case_queries(void) {
    pthread_t threads[6];
    for (int at = 0; at < 6; at++)
        CHECK(pthread_create(&threads[at], NULL, at % 2 ? queries : exchanges, (void *)(uintptr_t)(at + 1)) == 0);
    for (int at = 0; at < 6; at++) CHECK(pthread_join(threads[at], NULL) == 0);
    struct tithe_stats stats = {.size = sizeof stats};
    CHECK(tithe_stats(&stats) == 0 && stats.abandoned == 0);
}

/* A pass of mode guard reads all blocks, but no page from which the program took all access. */
void case_inaccessible(void) {
    char *block = tithe_malloc(4 * 4096);
    CHECK(block);
    memset(block, 0, 4 * 4096);
    char *page = (char *)(((uintptr_t)block + 4095) & ~(uintptr_t)4095);
    make_several(48, 0);
    keep_in((void *volatile *)(page + 4096));
    for (int at = 0; at < SEVERAL; at++) tithe_free(shown(hidden[at]));
    CHECK(mprotect(page, 4096, PROT_NONE) == 0);
    wipe();
    CHECK(tithe_collect() == 0 && live_of_several() == SEVERAL);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
    forget_in((void *volatile *)(page + 4096));
    wipe();
    CHECK(tithe_collect() == 0 && live_of_several() <= SEVERAL - NEARLY_ALL);
    tithe_free(block);
}
