/* Allocates near a limit: `stack BYTES` on a stack of that size above a page without access, `space MIB` that much; `own MIB` the same
 * on forty threads, more than there are rings for, after a limit of the address space of twice as much, by the program
 * itself; `child MIB` that in a child of fork, which has not allocated before. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static ucontext_t outside, inside;

static void allocate(void) {
    for (int i = 1; i < 100; i++) free(realloc(malloc(i), 2 * i));
}

enum { THREADS = 40 };

static void *fill(void *amount) {
    for (size_t n = 0; n < (size_t)amount; n++)
        if (!malloc(1 << 20)) return "no memory";
    return 0;
}

/* Sets the limit and fills half of it; 0, or where it failed. */
static int limit_and_fill(size_t amount) {
    struct rlimit limit = { 2 * amount << 20, 2 * amount << 20 };
    pthread_t threads[THREADS];
    pthread_attr_t small;
    void *failed = 0;
    mallopt(M_ARENA_MAX, 1);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    if (setrlimit(RLIMIT_AS, &limit)) return 2;
    for (int n = 0; n < THREADS; n++)
        if (pthread_create(threads + n, &small, fill, (void *)(amount / THREADS))) return 3;
    for (int n = 0; n < THREADS; n++) {
        pthread_join(threads[n], &failed);
        if (failed) return 4;
    }
    return prlimit(0, RLIMIT_AS, &limit, &limit) ? 5 : 0;
}

int main(int argc, char **argv) {
    size_t amount = atol(argv[2]);
    if (!strcmp(argv[1], "stack")) {
        char *place = mmap(0, 4096 + amount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(place, 4096, PROT_NONE);
        getcontext(&inside);
        inside.uc_stack.ss_sp = place + 4096;
        inside.uc_stack.ss_size = amount;
        inside.uc_link = &outside;
        makecontext(&inside, allocate, 0);
        return swapcontext(&outside, &inside);
    }
    if (!strcmp(argv[1], "own")) return limit_and_fill(amount);
    if (!strcmp(argv[1], "child")) {
        int status;
        pid_t child = fork();
        if (!child) exit(limit_and_fill(amount));
        return waitpid(child, &status, 0) != child || status ? 6 : 0;
    }
    return fill((void *)amount) != 0;
}
