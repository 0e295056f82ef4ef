/* A clock that advances with the number of reads: a microsecond each. Preloaded after a manager, it makes the manager's
   work independent of the speed of the machine and of the tool (jemalloc and mimalloc do some of their work when enough
   time has passed), and so the seeds that programs take from the time (lua).

   It also hides the stack's location: for that the C library reads /proc/self/maps, line by line, which under
   Valgrind's own tools contains their mappings too. Rust's start-up code requests it, and works without. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

/* 2020-01-01 00:00 UTC, s. */
#define BEGINNING 1577836800L

static long reads;

static long microseconds(void) {
    return __atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long passed = microseconds();
    (void)clock;
    now->tv_sec = BEGINNING + passed / 1000000;
    now->tv_nsec = passed % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    long passed = microseconds();
    (void)zone;
    now->tv_sec = BEGINNING + passed / 1000000;
    now->tv_usec = passed % 1000000;
    return 0;
}

time_t time(time_t *now) {
    time_t then = BEGINNING + microseconds() / 1000000;
    if (now)
        *now = then;
    return then;
}

clock_t clock(void) {
    return microseconds();
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes) {
    (void)thread;
    (void)attributes;
    return ENOSYS;
}
