/* main.c: `api CASE` runs one case, named as its function. */
#include "check.h"

uintptr_t hidden[SEVERAL];

NOINLINE void wipe(void) {
    volatile char frame[16384];
    for (size_t at = 0; at < sizeof frame; at++) frame[at] = 0;
    /* And in caller-saved registers: a thread that waits in the kernel may hold them for long. */
    __asm__ volatile("xor %%r8d, %%r8d\n xor %%r9d, %%r9d\n xor %%r10d, %%r10d\n xor %%r11d, %%r11d" ::: "r8", "r9", "r10", "r11");
    __asm__ volatile("xor %%eax, %%eax\n xor %%ecx, %%ecx\n xor %%edx, %%edx\n xor %%esi, %%esi\n xor %%edi, %%edi" ::: "rax", "rcx", "rdx", "rsi", "rdi");
#define ZERO(n) __asm__ volatile("pxor %%xmm" #n ", %%xmm" #n ::: "xmm" #n)
    ZERO(0); ZERO(1); ZERO(2); ZERO(3); ZERO(4); ZERO(5); ZERO(6); ZERO(7);
    ZERO(8); ZERO(9); ZERO(10); ZERO(11); ZERO(12); ZERO(13); ZERO(14); ZERO(15);
}

NOINLINE void make_several(size_t bytes, int atomic) {
    for (int at = 0; at < SEVERAL; at++) {
        void *block = atomic ? tithe_malloc_atomic(bytes) : tithe_malloc(bytes);
        CHECK(block);
        memset(block, 0x55, bytes);
        hidden[at] = ~(uintptr_t)block;
    }
    wipe();
}

NOINLINE int live_of_several(void) {
    int live = 0;
    for (int at = 0; at < SEVERAL; at++) live += tithe_is_live(shown(hidden[at]));
    return live;
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"blocks", case_blocks},     {"misuse", case_misuse},
    {"atomic", case_atomic},     {"collect", case_collect},
    {"explicit", case_explicit}, {"unstoppable", case_unstoppable},
    {"roots", case_roots},       {"threads", case_threads},
    {"fork", case_fork},         {"stats", case_stats},
    {"live", case_live},         {"why", case_why},
    {"chain", case_chain},       {"held", case_held},
    {"variable", case_variable}, {"neighbours", case_neighbours},
    {"queries", case_queries},     {"registers", case_registers},
    {"inaccessible", case_inaccessible},
};

int main(int count, char **arguments) {
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        if (count == 2 && strcmp(arguments[1], cases[at].name) == 0) {
            cases[at].run();
            puts("ok");
            return 0;
        }
    }
    fprintf(stderr, "usage: %s CASE\n", arguments[0]);
    return 2;
}
