/* processes.c: fork, vfork, posix_spawn and exit around collections. */
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct kept kept;
static void *volatile static_words[KEPT];
static int stop;

static void *churns(void *argument) {
    uint64_t seed = (uintptr_t)argument;
    while (!get_flag(&stop))
        churn(++seed, 50);
    return NULL;
}

static void *collects_on(void *argument) {
    (void)argument;
    while (!get_flag(&stop)) {
        int status = try_collect();
        CHECK(status == 0 || status == ENOTSUP || status == EAGAIN, "collect answered %d", status);
        if (!collects())
            wait_ms(1);
    }
    return NULL;
}

CASE(PLAIN, process_fork, "fork while other threads allocate and collect: children collect, start threads, fork") {
    keep(&kept, "static data in a child of fork", static_words, KEPT, 0, 1);
    pthread_t threads[3] = {start_thread(churns, (void *)1), start_thread(churns, (void *)100),
                            start_thread(collects_on, NULL)};
    for (size_t i = 0; i < effort(60, 20); i++) {
        int child = fork();
        if (child == 0) {
            stop = 0;
            check_whole(&kept);
            collect();
            churn(i, 200);
            pthread_t own = start_thread(churns, (void *)7);
            collect();
            check_kept(&kept);
            int grandchild = fork();
            if (grandchild == 0) {
                collect();
                check_whole(&kept);
                _exit(0);
            }
            reap(grandchild, 10, "a grandchild");
            set_flag(&stop, 1);
            join_thread(own);
            _exit(0);
        }
        reap(child, 20, "a child");
    }
    set_flag(&stop, 1);
    for (int i = 0; i < 3; i++)
        join_thread(threads[i]);
    check_kept(&kept);
}

CASE(PLAIN, process_child_drops, "blocks that a child of fork drops are reclaimed in the child and kept in the parent") {
    keep(&kept, "static data", static_words, KEPT, 0, 2);
    scrub_stack(SCRUB);
    int child = fork();
    if (child == 0) {
        for (int i = 0; i < KEPT; i++)
            static_words[i] = NULL;
        check_gone(&kept, 1);
        _exit(0);
    }
    reap(child, 20, "a child");
    check_kept(&kept);
}

CASE(PLAIN, process_vfork, "vfork while another thread allocates: its parent cannot stop, and no process hangs") {
    keep(&kept, "static data", static_words, KEPT, 0, 3);
    pthread_t thread = start_thread(churns, (void *)1);
    for (size_t i = 0; i < effort(100, 30); i++) {
        int child = vfork();
        if (child == 0)
            _exit(0);
        reap(child, 20, "a child of vfork");
        if (i % 10 == 0)
            collect();
    }
    set_flag(&stop, 1);
    join_thread(thread);
    check_kept(&kept);
}

/* The C library's handlers of fork do not run, and the manager learns of the child from the kernel alone. */
CASE(PLAIN, process_fork_raw, "a child that the system call made allocates, and has no collection") {
    keep(&kept, "static data", static_words, KEPT, 0, 9);
    int child = (int)syscall(SYS_fork);
    if (child == 0) {
        int status = try_collect();
        CHECK(status == EAGAIN || !collects(), "collect answered %d", status);
        churn(1, 20000);
        check_whole(&kept);
        _exit(0);
    }
    reap(child, 20, "a child of the system call");
    check_kept(&kept);
}

static int vforked;

static void *sleeps_in_vfork(void *argument) {
    (void)argument;
    int child = vfork();
    if (child == 0) {
        vforked = 1;
        usleep(900000);
        _exit(0);
    }
    reap(child, 20, "a child of vfork");
    return NULL;
}

/* Run with TITHE_PATIENCE=300: the thread that called vfork sleeps for 900 ms and cannot be stopped. */
CASE(PLAIN, process_vfork_long, "a collection while a thread waits for its vfork child is abandoned, not waited for") {
    needs_collector();
    keep(&kept, "static data", static_words, KEPT, 0, 4);
    pthread_t thread = start_thread(sleeps_in_vfork, NULL);
    await_flag(&vforked, 1, "the child of vfork");
    uint64_t start = now_ns();
    int status = try_collect();
    uint64_t ms = (now_ns() - start) / 1000000;
    note("collect answered %d after %llu ms", status, (unsigned long long)ms);
    CHECK(status == 0 || status == EAGAIN, "collect answered %d", status);
    churn(3, 500);
    check_whole(&kept);
    join_thread(thread);
    check_kept(&kept);
}

CASE(PLAIN, process_vfork_malloc, "a child of vfork allocates until it execs: the parent's heap stays consistent") {
    extern char **environ;
    keep(&kept, "static data", static_words, KEPT, 0, 5);
    pthread_t thread = start_thread(churns, (void *)1);
    for (size_t i = 0; i < effort(60, 20); i++) {
        int child = vfork();
        if (child == 0) {
            /* Forbidden by POSIX, but shells and build tools do it. */
            void *volatile block = malloc(100 + i);
            free(block);
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        reap(child, 20, "a child of vfork");
    }
    set_flag(&stop, 1);
    join_thread(thread);
    check_kept(&kept);
}

/* With `/bin/true` the new program is quick, and loads no manager. */
static char *nothing[] = {NULL}, *command[] = {"true", NULL};

/* Replaces the program by each function of the family in turn. The calls without an environment keep the manager. */
static void replace_by(size_t function) {
    extern int execveat(int, const char *, char *const[], char *const[], int);
    extern char **environ;
    int file = function == 5 ? open("/bin/true", O_RDONLY | O_CLOEXEC) : -1;
    switch (function) {
    case 0: execve("/bin/true", command, nothing); break;
    case 1: execle("/bin/sh", "sh", "-c", "test $# = 9 && test $9 = i", "0", "a", "b", "c", "d", "e", "f", "g", "h", "i",
                   (char *)NULL, nothing); break;
    case 2: execvpe("true", command, nothing); break;
    case 3: execveat(AT_FDCWD, "/bin/true", command, nothing, 0); break;
    case 4: environ = nothing; execl("/bin/true", "true", (char *)NULL); break;
    case 5: fexecve(file, command, nothing); break;
    case 6: environ = nothing; execv("/bin/true", command); break;
    case 7: execvp("true", command); break;
    default: execlp("true", "true", (char *)NULL);
    }
    _exit(9);
}

CASE(PLAIN, process_exec, "a thread execs while others collect: no signal of theirs reaches the new program") {
    keep(&kept, "static data", static_words, KEPT, 0, 7);
    for (size_t i = 0; i < effort(90, 18); i++) {
        int child = fork();
        if (child == 0) {
            start_thread(collects_on, NULL);
            start_thread(churns, (void *)1);
            execl("/no/such/program", "program", (char *)NULL);
            CHECK(errno == ENOENT, "execl: errno %d", errno);
            execv("/dev/null", command);
            CHECK(errno == EACCES, "execv: errno %d", errno);
            collect();
            check_whole(&kept);
            usleep(i * 37 % 1000);
            replace_by(i % 9);
        }
        reap(child, 20, "a program that a thread has execed");
    }
    check_kept(&kept);
}

static void execs_at_once(int signal) {
    (void)signal;
    execve("/bin/true", command, nothing);
    _exit(9);
}

CASE(PLAIN, process_handler_execs, "a handler execs, whatever it interrupts: it does not wait for its own thread") {
    struct sigaction action = {.sa_handler = execs_at_once};
    keep(&kept, "static data", static_words, KEPT, 0, 8);
    for (size_t i = 0; i < effort(60, 20); i++) {
        int child = fork();
        if (child == 0) {
            struct itimerval soon = {{0, 0}, {0, (suseconds_t)(500 + i * 131 % 2000)}};
            start_thread(i % 2 ? churns : collects_on, (void *)1);
            CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &soon, NULL) == 0, "no timer");
            collects_on(NULL);
        }
        reap(child, 20, "a program that a handler has execed");
    }
    check_kept(&kept);
}

static void *spawns(void *argument) {
    for (size_t i = 0; i < effort(150, 40); i++) {
        pid_t child;
        int status = posix_spawn(&child, "/bin/true", NULL, NULL, command, nothing);
        CHECK(status == 0, "posix_spawn: %d", status);
        reap(child, 20, "a spawned process");
    }
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

CASE(PLAIN, process_spawn, "a storm of posix_spawn from two threads while a third collects") {
    static int done;
    keep(&kept, "static data", static_words, KEPT, 0, 6);
    pthread_t threads[3] = {start_thread(spawns, &done), start_thread(spawns, &done), start_thread(churns, (void *)4)};
    size_t count = 0, refused = 0;
    while (get_flag(&done) < 2) {
        int status = try_collect();
        CHECK(status == 0 || status == EAGAIN || mode() == EXPLICIT, "collect answered %d", status);
        count++;
        refused += status == EAGAIN;
        if (!collects())
            wait_ms(1);
    }
    set_flag(&stop, 1);
    for (int i = 0; i < 3; i++)
        join_thread(threads[i]);
    note("%zu collections, %zu refused", count, refused);
    CHECK(refused == 0, "%zu of %zu collections were refused", refused, count);
    check_kept(&kept);
}

static void at_end(void) { churn(1, 1000); }

/* Run with TITHE_LOG: three collections are requested, and `exit` must add none. */
CASE(PLAIN, process_exit, "three collections are requested, and exit adds none") {
    atexit(at_end);
    for (int i = 0; i < 3; i++)
        collect();
}

static void *exits(void *argument) {
    (void)argument;
    wait_ms(30);
    exit(0);
}

CASE(PLAIN, process_exit_busy, "exit while other threads allocate and collect") {
    start_thread(churns, (void *)1);
    start_thread(collects_on, NULL);
    join_thread(start_thread(exits, NULL));
}

static volatile int forks;

static void forks_at_once(int signal) {
    (void)signal;
    int saved = errno;
    int child = fork();
    if (child == 0)
        _exit(0);
    reap(child, 20, "a child of a handler");
    forks++;
    errno = saved;
}

CASE(PLAIN, process_handler_forks, "a handler forks, whatever it interrupts: the child's heap is not locked") {
    struct sigaction action = {.sa_handler = forks_at_once, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    void *volatile *chain = NULL;
    for (int i = 0; i < 100000; i++) {
        void *volatile *link = malloc(64);
        CHECK(link, "malloc gave null");
        *link = (void *)chain;
        chain = link;
    }
    keep(&kept, "static data under handlers that fork", static_words, KEPT, 0, 3);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0, "no timer");
    uint64_t end = now_ns() + 1500 * UINT64_C(1000000);
    while (now_ns() < end)
        try_collect();
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0, "no timer");
    CHECK(forks > 20, "%d forks", forks);
    check_kept(&kept);
    CHECK(chain, "no chain");
}
