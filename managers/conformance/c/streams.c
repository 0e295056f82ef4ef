/* streams.c: a threaded program forks while its other threads read lines, flush and open streams. fork takes the C
 * library's list of streams; fflush(NULL) holds that and waits for a stream; getline holds a stream and waits for the
 * heap. A manager that locks its heap for the fork before the list is taken closes the circle (glibc bug 19431). */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READERS = 3, FORKERS = 2, LINE = 3000 };

/* Bytes that the threads may still allocate: bounded, since one manager never frees. */
static long allowance;
static int stop;
static char path[32];

static int goes_on(void) {
    while (__atomic_load_n(&allowance, __ATOMIC_RELAXED) <= 0 && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
        sched_yield();
    return !__atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void spend(long bytes) {
    __atomic_fetch_sub(&allowance, bytes, __ATOMIC_RELAXED);
}

/* The buffer grows from 120 bytes in many steps, all with the stream locked. */
static void read_line(FILE *stream) {
    char *line = NULL;
    size_t bytes = 0;
    rewind(stream);
    ssize_t length = getline(&line, &bytes, stream);
    CHECK(length == LINE + 1, "getline gave %zd: errno %d", length, errno);
    free(line);
}

static FILE *opened(const char *name, const char *mode) {
    FILE *stream = fopen(name, mode);
    CHECK(stream, "cannot open %s: errno %d", name, errno);
    return stream;
}

static void *reads(void *stream) {
    while (goes_on()) {
        read_line(stream);
        spend(2 * LINE);
    }
    return NULL;
}

static void *flushes(void *unused) {
    (void)unused;
    while (goes_on())
        CHECK(fflush(NULL) == 0, "fflush(NULL): errno %d", errno);
    return NULL;
}

static void *opens(void *unused) {
    (void)unused;
    while (goes_on()) {
        FILE *stream = opened("/dev/null", "w");
        CHECK(fprintf(stream, "%d\n", stop) == 2, "fprintf: errno %d", errno);
        CHECK(fclose(stream) == 0, "fclose: errno %d", errno);
        spend(5000);
    }
    return NULL;
}

/* Streams work in the child as they did. */
static void use_streams(FILE *inherited) {
    alarm((unsigned)effort(50, 15));
    read_line(inherited);
    CHECK(fflush(NULL) == 0, "fflush(NULL) in a child: errno %d", errno);
    FILE *own = opened(path, "r");
    read_line(own);
    CHECK(fclose(own) == 0, "fclose in a child: errno %d", errno);
}

static void child_of_fork(FILE *inherited) {
    use_streams(inherited);
    pid_t grandchild = fork();
    int status;
    CHECK(grandchild >= 0, "cannot fork: errno %d", errno);
    if (grandchild == 0) {
        use_streams(inherited);
        _exit(0);
    }
    CHECK(waitpid(grandchild, &status, 0) == grandchild, "waitpid: errno %d", errno);
    CHECK(status == 0, "a grandchild ended with wait status %#x", (unsigned)status);
    _exit(0);
}

static void *forks(void *stream) {
    size_t count = effort(300, 50);
    for (size_t i = 0; i < count; i++) {
        __atomic_store_n(&allowance, 400000, __ATOMIC_RELAXED);
        pid_t child = fork();
        if (child == 0 && i % 8 == 0)
            child_of_fork(stream);
        if (child == 0 && i % 8 == 4)
            execl("/bin/true", "true", (char *)NULL);
        if (child == 0)
            _exit(0);
        int status;
        CHECK(child > 0, "cannot fork: errno %d", errno);
        CHECK(waitpid(child, &status, 0) == child, "waitpid: errno %d", errno);
        CHECK(status == 0, "a child ended with wait status %#x%s", (unsigned)status,
              WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
    }
    return NULL;
}

static void begin(pthread_t *thread, void *(*function)(void *), void *argument) {
    CHECK(pthread_create(thread, NULL, function, argument) == 0, "pthread_create failed");
}

CASE(PLAIN, fork_streams, "threads fork while others call getline, fflush(NULL), fopen and fclose") {
    pthread_t others[READERS + 2], forkers[FORKERS];
    char line[LINE + 1];
    int file = memfd_create("lines", 0);
    CHECK(file >= 0, "memfd_create: errno %d", errno);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    memset(line, 'x', LINE);
    line[LINE] = '\n';
    CHECK(write(file, line, sizeof line) == sizeof line, "cannot write: errno %d", errno);
    FILE *streams[READERS + FORKERS];
    for (size_t i = 0; i < READERS + FORKERS; i++)
        streams[i] = opened(path, "r");
    /* The whole process stands still where fork hangs. */
    alarm((unsigned)effort(50, 15));
    for (size_t i = 0; i < READERS; i++)
        begin(&others[i], reads, streams[i]);
    begin(&others[READERS], flushes, NULL);
    begin(&others[READERS + 1], opens, NULL);
    for (size_t i = 0; i < FORKERS; i++)
        begin(&forkers[i], forks, streams[READERS + i]);
    for (size_t i = 0; i < FORKERS; i++)
        pthread_join(forkers[i], NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < READERS + 2; i++)
        pthread_join(others[i], NULL);
    alarm(0);
    for (size_t i = 0; i < READERS + FORKERS; i++)
        fclose(streams[i]);
    close(file);
}
