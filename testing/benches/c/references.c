/* Each kind of instruction that refers to data, once or a known number of times, between malloc(PATTERN_BEGINS) and
   malloc(PATTERN_ENDS). The test has the references expected of each. The block is two pages; offsets are in bytes.
   Each load has a register of its own: Valgrind drops a load whose value is overwritten without a use. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_BEGINS 0x10001
#define PATTERN_ENDS 0x10003

static void *volatile kept;

static void mark(size_t which) {
    void *block = malloc(which);
    kept = block;
    free(block);
}

int main(void) {
    char *block = aligned_alloc(4096, 8192);
    if (!block)
        return 1;
    memset(block, 0, 8192);
    /* For the gather and the masked ones: lanes 0 and 2 are active, 1 and 3 are not. */
    uint32_t *mask = (uint32_t *)(block + 4096), *index = (uint32_t *)(block + 4096 + 64);
    mask[0] = mask[2] = 0x80000000u;
    index[0] = 0, index[1] = 1, index[2] = 100, index[3] = 3;
    mark(PATTERN_BEGINS);
    __asm__ volatile(
        "movzbl 0(%0), %%r8d\n"
        "movzwl 2(%0), %%r9d\n"
        "movl 4(%0), %%r10d\n"
        "movq 8(%0), %%r11\n"
        "movdqu 16(%0), %%xmm0\n"
        "movb %%r8b, 32(%0)\n"
        "movw %%r9w, 34(%0)\n"
        "movl %%r10d, 36(%0)\n"
        "movq %%r11, 40(%0)\n"
        "movdqu %%xmm0, 48(%0)\n"
        : : "r"(block) : "r8", "r9", "r10", "r11", "xmm0", "memory");
    /* Load and store of the same address: 8 bytes each. */
    __asm__ volatile(
        "addq $1, 64(%0)\n"
        "lock addq $1, 72(%0)\n"
        "xchgq %%rax, 80(%0)\n"
        : : "r"(block) : "rax", "memory", "cc");
    __asm__ volatile("xor %%eax, %%eax\n lock cmpxchgq %%rcx, 96(%0)\n" : : "r"(block) : "rax", "rcx", "memory", "cc");
    /* 24 single bytes; then 3 words read and written. */
    {
        char *to = block + 128;
        uint64_t left = 24;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(0) : "memory");
        char *from = block + 192;
        to = block + 256;
        left = 3;
        __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    }
    /* Over the border of a line, and of a page. */
    __asm__ volatile("movq 316(%0), %%r8\n movq 4092(%0), %%r9\n" : : "r"(block) : "r8", "r9", "memory");
    if (__builtin_cpu_supports("avx2")) {
        __asm__ volatile("vmovdqu 384(%0), %%ymm0\n vmovdqu %%ymm0, 416(%0)\n" : : "r"(block) : "xmm0", "memory");
        /* Guarded: lanes 0 and 2. */
        __asm__ volatile("vmovdqu (%1), %%xmm1\n vmaskmovps 512(%0), %%xmm1, %%xmm0\n"
                         : : "r"(block), "r"(mask) : "xmm0", "xmm1", "memory");
        __asm__ volatile("vmovdqu (%1), %%xmm1\n vmovdqu (%2), %%xmm2\n vpxor %%xmm0, %%xmm0, %%xmm0\n"
                         "vpgatherdd %%xmm1, 1024(%0,%%xmm2,4), %%xmm0\n"
                         : : "r"(block), "r"(mask), "r"(index) : "xmm0", "xmm1", "xmm2", "memory");
        __asm__ volatile("vzeroupper");
    }
    /* None: the count is zero. */
    {
        char *to = block + 640, *from = block + 704;
        uint64_t left = 0;
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    }
    mark(PATTERN_ENDS);
    free(block);
    return 0;
}
