/* threads.c: threads that start, end and pass their blocks on, while collections happen. */
#include "proof.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "heaptoll.h"

enum { BATCH = 8, LEFT = 40 };

static struct {
    void *volatile block[LEFT];
} left[BATCH];

/* Frees the blocks left by the previous thread in this place, leaves blocks of its own, and loses some. */
static void *comes_and_goes(void *argument) {
    size_t place = (uintptr_t)argument % BATCH;
    struct rng rng = {(uintptr_t)argument + 1};
    for (size_t i = 0; i < LEFT; i++) {
        size_t size = 16 + rng_below(&rng, i % 8 ? 500 : 20000);
        unsigned char *old = left[place].block[i];
        if (old) {
            check_filled(old + 8, 8, i, "a block that an ended thread left");
            free(old);
        }
        unsigned char *block = malloc(size);
        CHECK(block, "malloc gave null");
        fill(block + 8, 8, i);
        left[place].block[i] = block;
        void *lost = malloc(size);
        CHECK(lost, "malloc gave null");
        if (!collects() || i % 2)
            free(lost);
    }
    return NULL;
}

static size_t heap_bytes(void) {
    /* A layer reports the pages with blocks, including unreachable ones. */
    if (is_layered())
        collect();
    struct heaptoll_census census = {.size = sizeof census};
    if (control() && control()->census && control()->census(&census) == 0)
        return census.mapped_bytes;
    return resident_bytes();
}

CASE(PLAIN, thread_storm, "a thousand threads: their cached blocks are reused, the heap does not grow") {
    size_t settled = 0;
    size_t count = effort(1600, 800);
    for (size_t first = 0; first < count; first += BATCH) {
        pthread_t threads[BATCH];
        for (size_t i = 0; i < BATCH; i++)
            threads[i] = start_thread(comes_and_goes, (void *)(first + i));
        for (size_t i = 0; i < BATCH; i++)
            join_thread(threads[i]);
        if (first % 80 == 0)
            collect();
        if (first + BATCH == count / 2 - count / 2 % BATCH)
            settled = heap_bytes();
    }
    size_t end = heap_bytes();
    note("heap %zu bytes after half of the threads, %zu after all", settled, end);
    CHECK(end <= settled + settled / 4 + ((size_t)4 << 20), "the heap grew from %zu to %zu bytes", settled, end);
}

static int storm_done;

static void *starts_threads(void *argument) {
    for (size_t i = 0; i < effort(600, 200); i++) {
        pthread_t thread = start_thread(comes_and_goes, argument);
        join_thread(thread);
    }
    __atomic_fetch_add(&storm_done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

CASE(PLAIN, thread_starts, "threads start and end while another collects all the time") {
    pthread_t starters[3];
    for (size_t i = 0; i < 3; i++)
        starters[i] = start_thread(starts_threads, (void *)i);
    while (get_flag(&storm_done) < 3) {
        collect();
        if (!collects())
            wait_ms(1);
    }
    for (size_t i = 0; i < 3; i++)
        join_thread(starters[i]);
}

static void *waits_a_little(void *argument) {
    (void)argument;
    wait_ms(1);
    return NULL;
}

CASE(PLAIN, thread_detached, "detached threads end at any time during a collection") {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (size_t i = 0; i < effort(400, 150); i++) {
        pthread_t thread;
        for (int tries = 0; pthread_create(&thread, &attributes, waits_a_little, NULL) != 0; tries++) {
            CHECK(tries < 1000, "pthread_create fails all the time");
            wait_ms(1);
        }
        collect();
    }
}

/* --- collections from all sides -------------------------------------------------------------------------------- */

static void *collects_often(void *argument) {
    static struct kept kept[BATCH];
    size_t number = (uintptr_t)argument;
    void *volatile words[KEPT];
    keep(&kept[number], "the stack of a thread that collects", words, KEPT, 0, number);
    for (size_t i = 0; i < effort(40, 15); i++) {
        collect();
        churn(number + i, 30);
        check_whole(&kept[number]);
    }
    hidden_pointer((void *)words);
    return NULL;
}

CASE(PLAIN, thread_collectors, "eight threads collect at once") {
    pthread_t threads[BATCH];
    for (size_t i = 0; i < BATCH; i++)
        threads[i] = start_thread(collects_often, (void *)i);
    for (size_t i = 0; i < BATCH; i++)
        join_thread(threads[i]);
}

/* --- ends of threads ------------------------------------------------------------------------------------------- */

static pthread_key_t key;
static int key_runs;

static void end_of_key(void *value) {
    check_filled((char *)value, 100, 9, "a block that a key's destructor gets");
    __atomic_fetch_add(&key_runs, 1, __ATOMIC_SEQ_CST);
    free(value);
    churn(7, 100);
    collect();
    if (key_runs % 3) {
        void *again = malloc(100);
        CHECK(again, "malloc gave null");
        fill(again, 100, 9);
        pthread_setspecific(key, again);
    }
}

static void *with_key(void *argument) {
    void *value = malloc(100);
    CHECK(value, "malloc gave null");
    fill(value, 100, 9);
    pthread_setspecific(key, value);
    value = NULL;
    collect();
    return argument;
}

CASE(PLAIN, thread_destructors, "destructors of keys allocate, free and collect while their thread ends") {
    CHECK(pthread_key_create(&key, end_of_key) == 0, "pthread_key_create");
    for (size_t i = 0; i < 30; i++) {
        pthread_t threads[2] = {start_thread(with_key, NULL), start_thread(with_key, NULL)};
        join_thread(threads[0]);
        join_thread(threads[1]);
    }
    CHECK(key_runs >= 60, "%d destructors ran", key_runs);
}

static struct kept of_main;
static void *volatile main_words[KEPT];
static int main_goes;

static void *survives(void *argument) {
    static struct kept own;
    void *volatile words[KEPT];
    await_flag(&main_goes, 1, "the main thread to go");
    wait_ms(20);
    keep(&own, "the stack of a thread that outlives the main thread", words, KEPT, 0, 81);
    scrub_stack(SCRUB);
    check_kept(&own);
    check_kept(&of_main);
    for (size_t i = 0; i < 20; i++) {
        pthread_t thread = start_thread(comes_and_goes, (void *)i);
        collect();
        join_thread(thread);
    }
    check_kept(&own);
    for (int i = 0; i < KEPT; i++)
        main_words[i] = NULL;
    check_gone(&of_main, 1);
    check_heap("after the main thread has gone");
    exit(argument ? 1 : 0);
}

CASE(PLAIN, thread_main_goes, "the main thread ends by pthread_exit, others continue and collect") {
    keep(&of_main, "static data after the main thread has gone", main_words, KEPT, 0, 80);
    start_thread(survives, NULL);
    set_flag(&main_goes, 1);
    scrub_stack(SCRUB);
    pthread_exit(NULL);
}

/* --- signal handlers ------------------------------------------------------------------------------------------- */

static struct kept of_handler;
static void *volatile handler_words[KEPT];
static volatile sig_atomic_t handled;

static void allocates(int number) {
    (void)number;
    churn((uint64_t)handled + 1, 40);
    if (handled % 4 == 0)
        check_whole(&of_handler);
    handled = handled + 1;
}

CASE(PLAIN, signal_malloc, "a handler allocates and frees while its thread computes and another thread collects") {
    keep(&of_handler, "static data", handler_words, KEPT, 0, 90);
    struct sigaction action = {.sa_handler = allocates, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    storm_done = 0;
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    /* The handler runs in the main thread only, which calls nothing that allocates meanwhile. */
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    pthread_t thread = start_thread(starts_threads, NULL);
    struct itimerval every = {{0, 2000}, {0, 2000}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    volatile uint64_t sum = 0;
    for (uint64_t end = now_ns() + 400000000; now_ns() < end || handled < 20;)
        for (int i = 0; i < 10000; i++)
            sum = sum + (uint64_t)i;
    setitimer(ITIMER_REAL, &none, NULL);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    join_thread(thread);
    note("%d handlers ran", (int)handled);
    check_kept(&of_handler);
}

/* The C library frees the text of an unknown error after the last destructor has run. */
static void *formats_unknown_error(void *argument) {
    void *block = malloc(100);
    CHECK(block && strerror(12345 + (int)((uintptr_t)argument % 100)), "no text");
    free(block);
    return NULL;
}

static size_t metadata_bytes(void) {
    struct heaptoll_census census = {.size = sizeof census};
    return control() && control()->census && control()->census(&census) == 0 ? census.metadata_bytes : 0;
}

CASE(PLAIN, thread_frees_last, "blocks freed after a thread's last destructor leave no metadata") {
    size_t settled = 0;
    for (size_t first = 0; first < 1600; first += BATCH) {
        pthread_t threads[BATCH];
        for (size_t i = 0; i < BATCH; i++)
            threads[i] = start_thread(formats_unknown_error, (void *)(first + i));
        for (size_t i = 0; i < BATCH; i++)
            join_thread(threads[i]);
        if (first == 400)
            settled = metadata_bytes();
    }
    size_t grown = metadata_bytes() - settled;
    CHECK(grown <= 128 * 1024, "1200 threads left %zu bytes of metadata", grown);
}
