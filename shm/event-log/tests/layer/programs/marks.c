/* Marks requests in one of many ways, as C and as C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heaptoll_events.h"

static void request(uint32_t kind)
{
    heaptoll_event_begin();
    heaptoll_event_end(kind);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void many(long count)
{
    for (long i = 0; i < count; i++) request((uint32_t)(i % 10));
}

static void *thread(void *count)
{
    many((long)(intptr_t)count);
    return 0;
}

static void threads(long at_once, long rounds, long count)
{
    for (long round = 0; round < rounds; round++) {
        pthread_t all[64];
        for (long i = 0; i < at_once; i++) pthread_create(&all[i], 0, thread, (void *)(intptr_t)count);
        for (long i = 0; i < at_once; i++) pthread_join(all[i], 0);
    }
}

/* Allocates garbage, for a manager that collects. */
static void garbage(long count)
{
    static void *keep[64];
    for (long i = 0; i < count; i++) {
        heaptoll_event_begin();
        free(keep[i % 64]);
        keep[i % 64] = malloc(1000);
        heaptoll_event_end(0);
    }
}

static int wait_for(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* Request 1 begins before the fork and ends in both; 2 is the child's, 3 the parent's. */
static int forks(void)
{
    request(0);
    heaptoll_event_begin();
    pid_t child = fork();
    if (child == 0) {
        heaptoll_event_end(1);
        request(2);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            request(4);
            _exit(0);
        }
        _exit(wait_for(grandchild));
    }
    heaptoll_event_end(1);
    int status = wait_for(child);
    request(3);
    return status;
}

/* In the child another thread has the first request, then the thread that forked, which has a chunk of the parent's. */
static int forks_threads(void)
{
    many(5);
    pid_t child = fork();
    if (child == 0) {
        threads(1, 1, 7);
        many(5);
        _exit(0);
    }
    many(5);
    return wait_for(child);
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    request(1);
    signals = signals + 1;
}

/* Requests of a signal handler in between. */
static int handlers(long count)
{
    struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, 0);
    for (long i = 0; i < count || signals < 200; i++) request(0);
    setitimer(ITIMER_REAL, &never, 0);
    request(2);
    return 0;
}

static void on_signal_many(int number)
{
    (void)number;
    for (int i = 0; i < 3000; i++) request(1);
    signals = signals + 1;
}

/* More of them than fit into a chunk. */
static int handlers_many(void)
{
    /* Often: on a fast processor the requests in between fill the file. */
    struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    signal(SIGALRM, on_signal_many);
    setitimer(ITIMER_REAL, &often, 0);
    while (signals < 300) request(0);
    setitimer(ITIMER_REAL, &never, 0);
    request(2);
    return 0;
}

/* One child after another, each with requests. */
static int children(long count)
{
    for (long i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            many(3);
            _exit(0);
        }
        if (wait_for(child) != 0) return 1;
    }
    return 0;
}

static int misuse(void)
{
    heaptoll_event_end(1);
    heaptoll_event_begin();
    heaptoll_event_begin();
    heaptoll_event_end(2);
    heaptoll_event_end(3);
    heaptoll_event_begin();
    return 0;
}

/* errno must be unchanged. */
static int keeps_errno(void)
{
    errno = 1234;
    many(10000);
    return errno == 1234 ? 0 : 1;
}

static int slow(void)
{
    uint64_t before = now_ns();
    heaptoll_event_begin();
    struct timespec time = { 0, 30000000 };
    while (nanosleep(&time, &time) != 0) { }
    heaptoll_event_end(1);
    printf("%llu %llu\n", (unsigned long long)before, (unsigned long long)now_ns());
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    long numbers[3] = { 0, 0, 0 };
    for (int i = 2; i < argc && i < 5; i++) numbers[i - 2] = atol(argv[i]);
    if (strcmp(way, "many") == 0) {
        many(numbers[0]);
        return 0;
    }
    if (strcmp(way, "threads") == 0) {
        threads(numbers[0], numbers[1], numbers[2]);
        return 0;
    }
    if (strcmp(way, "garbage") == 0) {
        garbage(numbers[0]);
        return 0;
    }
    if (strcmp(way, "killed") == 0) {
        many(numbers[0]);
        heaptoll_event_begin();
        raise(SIGKILL);
    }
    if (strcmp(way, "exec") == 0) {
        many(3);
        execl("/proc/self/exe", argv[0], "many", "4", (char *)0);
    }
    if (strcmp(way, "forks") == 0) return forks();
    if (strcmp(way, "forks-threads") == 0) return forks_threads();
    if (strcmp(way, "handlers") == 0) return handlers(numbers[0]);
    if (strcmp(way, "handlers-many") == 0) return handlers_many();
    if (strcmp(way, "children") == 0) return children(numbers[0]);
    if (strcmp(way, "misuse") == 0) return misuse();
    if (strcmp(way, "errno") == 0) return keeps_errno();
    if (strcmp(way, "slow") == 0) return slow();
    return 2;
}
