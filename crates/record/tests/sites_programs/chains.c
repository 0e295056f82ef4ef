/* Allocates in every way that makes a stack hard to walk. Each size is requested at one place only, so that a test can
 * check which stack it must have. Built without frame pointers. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile int sink;

static APART void take(size_t size) {
    void *block = malloc(size);
    sink += block != NULL;
    free(block);
    sink++;
}

/* Two callers at the same depth, with frames of one size. */
static APART void first(void) { take(1001); sink++; }
static APART void second(void) { take(1002); sink++; }

static inline __attribute__((always_inline)) void inlined(size_t size) {
    free(malloc(size));
    sink++;
}
static APART void around(void) { inlined(1003); sink++; }

/* The frame's size is known at run time only: found by the frame pointer. */
static APART void varying(size_t bytes) {
    char *local = alloca(bytes);
    memset(local, 1, bytes);
    take(1004);
    sink += local[bytes / 2];
}

/* The frame is aligned to more than the stack is. */
static APART void aligned(size_t bytes) {
    _Alignas(128) volatile char local[256];
    char *more = alloca(bytes);
    more[0] = local[3] = 1;
    take(1005);
    sink += local[3] + more[0];
}

static APART void large(void) {
    volatile char local[3 << 20];
    local[17] = local[2 << 20] = 1;
    take(1006);
    sink += local[17];
}

static APART void deep(int levels) {
    if (levels == 0)
        take(1007);
    else
        deep(levels - 1);
    sink++;
}

static int compare(const void *a, const void *b) {
    sink++;
    take(1008);
    return *(const int *)a - *(const int *)b;
}
static APART void sorting(void) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    sink += numbers[0];
}

static void handler(int number) {
    take(number == SIGUSR1 ? 1009 : 1010);
    sink++;
}
static APART void interrupted(int number) {
    raise(number);
    sink++;
}
static APART void signals(void) {
    static char stack[64 << 10];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    interrupted(SIGUSR1);
    interrupted(SIGUSR2);
}

static void *thread(void *unused) {
    take(1011);
    sink++;
    return unused;
}
static APART void threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* Code that no table knows. */
static APART void made_at_run_time(void) {
    static const unsigned char code[] = {
        0x48, 0x83, 0xec, 0x08, /* sub $8, %rsp */
        0xff, 0xd6,             /* call *%rsi */
        0x48, 0x83, 0xc4, 0x08, /* add $8, %rsp */
        0xc3,
    };
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    ((void (*)(size_t, void (*)(size_t)))page)(1012, take);
    sink++;
}

/* Each is loaded where the one before was. */
static APART void plugins(int count, char **paths) {
    for (int i = 0; i < count; i++) {
        void *plugin = dlopen(paths[i], RTLD_NOW);
        if (!plugin) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        void (*enter)(void (*)(size_t)) = (void (*)(void (*)(size_t)))dlsym(plugin, "enter");
        enter(take);
        dlclose(plugin);
    }
}

static APART void in_child(void) {
    take(1013);
    sink++;
}

int main(int count, char **arguments) {
    for (int round = 0; round < 3; round++) {
        first();
        second();
        around();
        varying(100 + round * 16);
        aligned(100 + round * 64);
        large();
        deep(200);
        sorting();
        signals();
        threads();
        made_at_run_time();
        plugins(count - 1, arguments + 1);
    }
    pid_t child = fork();
    if (child == 0) {
        first();
        in_child();
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    /* It ends before /proc can be read. */
    kill(getpid(), SIGKILL);
    return status;
}
