/* The program that is stepped through: for each size, malloc and free where a free list has a block of that size,
 * three times.
 *
 * usage: step [asleep] SIZE...
 * Each measured call stands between two breakpoints (int3), malloc first, then free. With `asleep` there is a second
 * thread, which waits for ever: what a manager does only in programs with threads, it does. Without a tracer the first
 * breakpoint ends the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 16
#define ROUNDS 3 /* the tracer knows how many */

static void *sleep_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

static uintptr_t stepped(uintptr_t function, uintptr_t argument) {
    uintptr_t result;
    /* The red zone is left alone; the call clobbers what a call may. */
    __asm__ volatile("subq $128, %%rsp\n\t"
                     "int3\n\t"
                     "call *%[function]\n\t"
                     "int3\n\t"
                     "addq $128, %%rsp"
                     : "=a"(result), "+D"(argument), [function] "+r"(function)
                     :
                     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15");
    return result;
}

int main(int argc, char **argv) {
    int at = 1;
    if (argc > 1 && !strcmp(argv[1], "asleep")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0) return 3;
        at = 2;
    }
    /* Not through the linkage table, which would bind at the first call. */
    uintptr_t allocate = (uintptr_t)dlsym(RTLD_DEFAULT, "malloc");
    uintptr_t release = (uintptr_t)dlsym(RTLD_DEFAULT, "free");
    if (!allocate || !release) return 3;
    for (; at < argc; at++) {
        size_t bytes = strtoul(argv[at], NULL, 10);
        /* Every second one is given back: a list of several blocks, which a search would have to pass, none of them
         * with a free neighbour. Then one is taken out and put in again, as a program does that is under way. */
        void *blocks[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(bytes);
            if (!blocks[i]) return 3;
            memset(blocks[i], 1, bytes);
        }
        for (int i = 0; i < BLOCKS; i += 2) free(blocks[i]);
        void *block = malloc(bytes);
        if (!block) return 3;
        free(block);
        for (int round = 0; round < ROUNDS; round++) {
            block = (void *)stepped(allocate, bytes);
            if (!block) return 3;
            memset(block, 1, bytes);
            stepped(release, (uintptr_t)block);
        }
        for (int i = 1; i < BLOCKS; i += 2) free(blocks[i]);
    }
    return 0;
}
