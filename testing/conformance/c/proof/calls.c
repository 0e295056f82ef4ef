/* calls.c: threads that wait in system calls while another thread collects a hundred times. The stop signal interrupts
 * them: a call then continues, or fails with EINTR where the remaining time is unknown. The program sees nothing else,
 * and the total times are right.
 */
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Calls with a time-out wait so long, in nanoseconds; those without are ended by the main thread after it. */
#define LONG UINT64_C(600000000)
/* Earlier than the clock's grain is too early. Late is what a busy machine makes it. */
#define GRAIN UINT64_C(2000000)

static struct timespec left_until(uint64_t end) {
    uint64_t now = now_ns(), left = end > now ? end - now : 0;
    return (struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)};
}

static int ms_until(uint64_t end) {
    struct timespec left = left_until(end);
    return (int)(left.tv_sec * 1000 + (left.tv_nsec + 999999) / 1000000);
}

static int pipe_ends[2], listening, accepted_by, pair[2];
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int condition_met;
static size_t interrupted[32];

#define AGAIN(number, condition)                                                        \
    do {                                                                                \
        CHECK(condition, "%s: errno %d", __func__, errno);                              \
        interrupted[number]++;                                                          \
    } while (0)

/* --- calls with a time-out: they end at `end` ------------------------------------------------------------------- */

static void in_epoll_wait(size_t number, uint64_t end) {
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = pair[0]};
    CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event) == 0, "epoll: errno %d", errno);
    int found;
    while ((found = epoll_wait(set, &event, 1, ms_until(end))) != 0)
        AGAIN(number, found < 0 && errno == EINTR);
    close(set);
}

static void in_poll(size_t number, uint64_t end) {
    struct pollfd one = {.fd = pair[0], .events = POLLIN};
    int found;
    while ((found = poll(&one, 1, ms_until(end))) != 0)
        AGAIN(number, found < 0 && errno == EINTR);
}

static void in_select(size_t number, uint64_t end) {
    int found;
    do {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(pair[0], &set);
        struct timespec left = left_until(end);
        found = pselect(pair[0] + 1, &set, NULL, NULL, &left, NULL);
        if (found != 0)
            AGAIN(number, found < 0 && errno == EINTR);
    } while (found != 0);
}

static void in_nanosleep(size_t number, uint64_t end) {
    struct timespec left = left_until(end);
    while (nanosleep(&left, &left) != 0)
        AGAIN(number, errno == EINTR);
}

static void in_clock_nanosleep(size_t number, uint64_t end) {
    struct timespec at = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    int status;
    while ((status = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL)) != 0) {
        errno = status;
        AGAIN(number, status == EINTR);
    }
}

static struct timespec wall_clock(uint64_t end) {
    struct timespec now, left = left_until(end);
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t nanos = (uint64_t)now.tv_nsec + (uint64_t)left.tv_nsec;
    return (struct timespec){now.tv_sec + left.tv_sec + (time_t)(nanos / 1000000000), (long)(nanos % 1000000000)};
}

static void in_cond_timedwait(size_t number, uint64_t end) {
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec at = wall_clock(end);
    pthread_mutex_lock(&own);
    int status;
    while ((status = pthread_cond_timedwait(&never, &own, &at)) == 0)
        interrupted[number]++; /* a spurious wake-up, which POSIX allows */
    CHECK(status == ETIMEDOUT, "pthread_cond_timedwait answered %d", status);
    pthread_mutex_unlock(&own);
}

static void in_sem_timedwait(size_t number, uint64_t end) {
    sem_t never;
    sem_init(&never, 0, 0);
    struct timespec at = wall_clock(end);
    while (sem_timedwait(&never, &at) != 0 && errno != ETIMEDOUT)
        AGAIN(number, errno == EINTR);
}

static void in_sigtimedwait(size_t number, uint64_t end) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (;;) {
        struct timespec left = left_until(end);
        if (sigtimedwait(&set, NULL, &left) == SIGUSR2 || errno == EAGAIN)
            break;
        AGAIN(number, errno == EINTR);
    }
}

static void in_receive_timeout(size_t number, uint64_t end) {
    int own[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0, "socketpair: errno %d", errno);
    char byte;
    do {
        struct timespec left = left_until(end);
        struct timeval limit = {left.tv_sec, left.tv_nsec / 1000 + 1};
        setsockopt(own[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        if (recv(own[0], &byte, 1, 0) < 0 && errno == EAGAIN)
            break;
        AGAIN(number, errno == EINTR);
    } while (1);
}

/* --- calls that the main thread ends: they restart, EINTR is none of the answers -------------------------------- */

static void in_read(size_t number, uint64_t end) {
    (void)end;
    (void)number;
    char byte = 0;
    ssize_t got = read(pipe_ends[0], &byte, 1);
    CHECK(got == 1 && byte == 'x', "read of a pipe: %zd, errno %d", got, errno);
}

static void in_accept(size_t number, uint64_t end) {
    (void)end;
    (void)number;
    accepted_by = accept(listening, NULL, NULL);
    CHECK(accepted_by >= 0, "accept: errno %d", errno);
}

static void in_cond_wait(size_t number, uint64_t end) {
    (void)end;
    (void)number;
    pthread_mutex_lock(&mutex);
    while (!condition_met)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void in_sem_wait(size_t number, uint64_t end) {
    (void)end;
    while (sem_wait(&semaphore) != 0)
        AGAIN(number, errno == EINTR);
}

static void in_timer_read(size_t number, uint64_t end) {
    (void)number;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec at = {.it_value = {(time_t)(end / 1000000000), (long)(end % 1000000000)}};
    CHECK(timer >= 0 && timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) == 0, "timerfd: errno %d", errno);
    uint64_t times;
    ssize_t got = read(timer, &times, sizeof times);
    CHECK(got == sizeof times && times == 1, "read of a timer: %zd, errno %d", got, errno);
    close(timer);
}

static const struct {
    const char *name;
    void (*wait)(size_t number, uint64_t end);
    /* With EINTR: 1, no collector knows how much time is left; 2, one that stops threads by a plain signal does not
     * restart the call, which signal(7) allows (PROOF_PLAIN_STOPS). */
    int may_fail;
} CALLS[] = {
    {"epoll_wait", in_epoll_wait, 1},
    {"poll", in_poll, 2},
    {"pselect", in_select, 2},
    {"nanosleep", in_nanosleep, 2},
    {"clock_nanosleep", in_clock_nanosleep, 2},
    {"pthread_cond_timedwait", in_cond_timedwait, 2},
    {"sem_timedwait", in_sem_timedwait, 2},
    {"sigtimedwait", in_sigtimedwait, 1},
    {"recv with SO_RCVTIMEO", in_receive_timeout, 1},
    {"read of a pipe", in_read, 0},
    {"accept", in_accept, 0},
    {"pthread_cond_wait", in_cond_wait, 0},
    {"sem_wait", in_sem_wait, 0},
    {"read of a timer", in_timer_read, 0},
};
enum { COUNT = sizeof CALLS / sizeof *CALLS };

static int begun;

static void *calls(void *argument) {
    size_t number = (uintptr_t)argument;
    uint64_t start = now_ns(), end = start + LONG;
    __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
    CALLS[number].wait(number, end);
    uint64_t took = now_ns() - start;
    CHECK(took + GRAIN >= LONG, "%s ended after %llu ms instead of %llu", CALLS[number].name,
          (unsigned long long)(took / 1000000), (unsigned long long)(LONG / 1000000));
    CHECK(took < LONG + UINT64_C(5000000000), "%s took %llu ms instead of %llu", CALLS[number].name,
          (unsigned long long)(took / 1000000), (unsigned long long)(LONG / 1000000));
    int may_fail = CALLS[number].may_fail == 1 || (CALLS[number].may_fail == 2 && getenv("PROOF_PLAIN_STOPS"));
    CHECK(may_fail || interrupted[number] == 0, "%s failed with EINTR", CALLS[number].name);
    return NULL;
}

CASE(PLAIN, call_waits, "threads wait in epoll, poll, sleeps, futexes, pipes and sockets while another collects") {
    CHECK(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "errno %d", errno);
    sem_init(&semaphore, 0, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* An abstract name: no file stays. */
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "proof-%d", (int)getpid());
    listening = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listening, (struct sockaddr *)&address, sizeof address) == 0 && listen(listening, 1) == 0,
          "listen: errno %d", errno);
    pthread_t threads[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        threads[i] = start_thread(calls, (void *)i);
    await_flag(&begun, COUNT, "the calls");
    uint64_t start = now_ns();
    for (int i = 0; i < 100; i++) {
        collect();
        wait_ms(4);
    }
    uint64_t now = now_ns();
    if (now < start + LONG + 10000000)
        wait_ms((unsigned)((start + LONG + 10000000 - now) / 1000000));
    CHECK(write(pipe_ends[1], "x", 1) == 1, "write: errno %d", errno);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(client, (struct sockaddr *)&address, sizeof address) == 0, "connect: errno %d", errno);
    pthread_mutex_lock(&mutex);
    condition_met = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    sem_post(&semaphore);
    for (size_t i = 0; i < COUNT; i++)
        join_thread(threads[i]);
    for (size_t i = 0; i < COUNT; i++)
        if (interrupted[i])
            note("%s: %zu times EINTR or woken", CALLS[i].name, interrupted[i]);
}

/* --- a timer with a thread ---------------------------------------------------------------------------------------- */

static struct kept kept;
static void *volatile words[KEPT];

static void on_timer(union sigval value) { set_flag(value.sival_ptr, 1); }

CASE(PLAIN, kernel_timer_thread, "a timer with a thread of its own, which blocks every signal: collections still end") {
    static int fired;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer,
                             .sigev_value.sival_ptr = &fired};
    struct itimerspec soon = {.it_value = {0, 20000000}};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create: errno %d", errno);
    keep(&kept, "static data with a timer's thread running", words, KEPT, 0, 3);
    scrub_stack(SCRUB);
    uint64_t start = now_ns();
    size_t abandoned = 0;
    for (int i = 0; i < 6; i++) {
        int status = try_collect();
        CHECK(status == 0 || status == EAGAIN || mode() == EXPLICIT, "collect answered %d", status);
        abandoned += status == EAGAIN;
        churn((uint64_t)i, 200);
        check_whole(&kept);
    }
    note("%zu of 6 collections abandoned, %llu ms", abandoned, (unsigned long long)((now_ns() - start) / 1000000));
    CHECK(timer_settime(timer, 0, &soon, NULL) == 0, "timer_settime: errno %d", errno);
    await_flag(&fired, 1, "the timer");
    timer_delete(timer);
}
