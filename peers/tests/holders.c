/* Blocks that are held only from roots that a shim must add to the collector's: a thread's storage, the result of a
 * thread that is not joined yet, memory mapped by the program, the main thread's storage, after fork too. Threads start
 * and end on stacks that glibc caches in between. Exits with 0 when every block still holds what was written. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 1000

static __thread char *storage;
static char **mapped;

static void lost(const char *what) {
    dprintf(2, "lost: %s\n", what);
    _exit(1);
}

static void churn(int times, size_t size) {
    for (int i = 0; i < times; i++)
        free(malloc(size));
}

static void *work(void *argument) {
    int number = *(int *)argument;
    char **blocks = malloc(BLOCKS * sizeof *blocks);
    storage = malloc(100);
    strcpy(storage, "storage");
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(64);
        sprintf(blocks[i], "%d-%d", number, i);
    }
    churn(100000, 100);
    for (int i = 0; i < BLOCKS; i++) {
        char expected[64];
        sprintf(expected, "%d-%d", number, i);
        if (strcmp(expected, blocks[i]))
            lost("held from a thread's stack");
    }
    if (strcmp(storage, "storage"))
        lost("held from a thread's storage");
    char *result = malloc(32);
    strcpy(result, "result");
    return result;
}

static void round_of_threads(void) {
    pthread_t threads[4];
    static int numbers[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, work, &numbers[i]))
            lost("a thread could not be created");
    for (int i = 0; i < 4; i++) {
        char *result;
        churn(2000, 1000);
        pthread_join(threads[i], (void **)&result);
        if (strcmp(result, "result"))
            lost("held as a thread's result");
    }
}

int main(void) {
    storage = malloc(50);
    strcpy(storage, "main");
    mapped = mmap(NULL, BLOCKS * sizeof *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < BLOCKS; i++) {
        mapped[i] = malloc(48);
        sprintf(mapped[i], "%d", i);
    }
    for (int round = 0; round < 6; round++) {
        round_of_threads();
        if (round == 3) {
            pid_t child = fork();
            if (child == 0) {
                round_of_threads();
                churn(100000, 100);
                _exit(strcmp(storage, "main") != 0);
            }
            int status;
            waitpid(child, &status, 0);
            if (status)
                lost("in a child of fork");
        }
    }
    if (strcmp(storage, "main"))
        lost("held from the main thread's storage");
    for (int i = 0; i < BLOCKS; i++)
        if (atoi(mapped[i]) != i)
            lost("held from memory that was mapped");
    return 0;
}
