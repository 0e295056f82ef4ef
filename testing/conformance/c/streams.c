/* streams.c: a threaded program forks while its other threads read lines, flush and open streams. fork takes the C
 * library's list of streams; fflush(NULL) holds that and waits for a stream; getline holds a stream and waits for the
 * heap. A manager that locks its heap for the fork before the list is taken deadlocks (glibc bug 19431). */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READERS = 3, FORKERS = 2, LINE = 3000 };

/* What hangs is ended after so long: far more than it takes on a loaded machine, where 15 s were too few. */
enum { WATCHDOG_S = 100 };

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
    alarm(WATCHDOG_S);
    read_line(inherited);
    /* The kernel copies descriptors before memory: a stream that another thread was just opening may have none here. */
    CHECK(fflush(NULL) == 0 || errno == EBADF, "fflush(NULL) in a child: errno %d", errno);
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

/* The deadlock in isolation: a stream's write function, which fflush(NULL) calls with the list held, waits until the
 * forking thread can make no progress, and allocates. */
static sem_t list_held, fork_began;
static pid_t forker;

static void fork_begins(void) {
    sem_post(&fork_began);
}

static void wait_until_asleep(pid_t thread) {
    char name[48], state[400];
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)thread);
    for (char *after = NULL; !after || after[2] != 'S'; nanosleep(&(struct timespec){0, 1000000}, NULL)) {
        int file = open(name, O_RDONLY);
        ssize_t length = read(file, state, sizeof state - 1);
        CHECK(file >= 0 && length > 0, "cannot read %s: errno %d", name, errno);
        state[length] = 0;
        close(file);
        after = strrchr(state, ')');
    }
}

static ssize_t allocates_late(void *cookie, const char *data, size_t bytes) {
    (void)cookie, (void)data;
    sem_post(&list_held);
    sem_wait(&fork_began);
    wait_until_asleep(forker);
    void *block = malloc(5000);
    CHECK(block, "malloc gave null while another thread forks");
    free(block);
    return (ssize_t)bytes;
}

static void *flushes_once(void *unused) {
    (void)unused;
    CHECK(fflush(NULL) == 0, "fflush(NULL): errno %d", errno);
    return NULL;
}

static void fork_while_the_list_is_held(void) {
    pthread_t flusher;
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = allocates_late});
    CHECK(stream && fputs("x", stream) >= 0, "fopencookie: errno %d", errno);
    sem_init(&list_held, 0, 0);
    sem_init(&fork_began, 0, 0);
    CHECK(pthread_atfork(fork_begins, NULL, NULL) == 0, "pthread_atfork failed");
    forker = gettid();
    CHECK(pthread_create(&flusher, NULL, flushes_once, NULL) == 0, "pthread_create failed");
    sem_wait(&list_held);
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "a child ended with wait status %#x", (unsigned)status);
    pthread_join(flusher, NULL);
    CHECK(fclose(stream) == 0, "fclose: errno %d", errno);
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
    /* Where fork hangs, the whole process hangs. */
    alarm(WATCHDOG_S);
    fork_while_the_list_is_held();
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
