/* References whose misses are known by calculation. The loops are assembly: each makes only the one reference that is
   written, and keeps all else in registers. malloc(PATTERN_BEGINS) and malloc(PATTERN_ENDS) mark what counts, and
   aligned_alloc returns the block that is walked, so that the sink of the test knows its address.

   patterns sweep BYTES ROUNDS          loads 8 bytes after 8 bytes, from the first to the last, again and again
   patterns write BYTES ROUNDS          the same with stores
   patterns stride BYTES COUNT ROUNDS   loads at COUNT addresses that are BYTES apart
   patterns random BYTES COUNT          loads at COUNT random addresses, a multiple of 8 each
   patterns chase BYTES ROUNDS          follows pointers through all lines of 64 bytes, in one random cycle
   patterns straddle BYTES ROUNDS       loads of 8 bytes, each over the border of two lines
   patterns copy BYTES                  the kernel reads the block, then writes it */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATTERN_BEGINS 0x10001
#define PATTERN_ENDS 0x10003
#define LINE 64
#define PAGE 4096

/* Volatile: otherwise the compiler removes the allocation of an unused block. */
static void *volatile kept;

static void mark(size_t which) {
    void *block = malloc(which);
    kept = block;
    free(block);
}

static uint64_t state = 0x9e3779b97f4a7c15u;

/* xorshift64*: the same numbers everywhere. */
static uint64_t next_random(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
}

static void sweep(char *block, size_t bytes, long rounds, int store) {
    for (; rounds > 0; rounds--) {
        char *at = block, *end = block + bytes;
        if (store)
            __asm__ volatile("1: movq %%rax, (%0)\n add $8, %0\n cmp %1, %0\n jb 1b" : "+r"(at) : "r"(end) : "memory", "cc");
        else
            __asm__ volatile("1: movq (%0), %%rax\n add $8, %0\n cmp %1, %0\n jb 1b" : "+r"(at) : "r"(end) : "rax", "memory", "cc");
    }
}

static void stride(char *block, size_t bytes, long count, long rounds, size_t from) {
    for (; rounds > 0; rounds--) {
        char *at = block + from;
        long left = count;
        __asm__ volatile("1: movq (%0), %%rax\n add %2, %0\n dec %1\n jnz 1b"
                         : "+r"(at), "+r"(left) : "r"(bytes) : "rax", "memory", "cc");
    }
}

static void at_random(char *block, size_t bytes, long count) {
    for (; count > 0; count--) {
        char *at = block + next_random() % (bytes / 8) * 8;
        __asm__ volatile("movq (%0), %%rax" : : "r"(at) : "rax", "memory");
    }
}

/* One cycle through all lines (Sattolo). */
static void tie(char *block, size_t lines) {
    size_t *order = malloc(lines * sizeof *order);
    if (!order)
        exit(1);
    for (size_t line = 0; line < lines; line++)
        order[line] = line;
    for (size_t line = lines - 1; line > 0; line--) {
        size_t other = next_random() % line, keep = order[line];
        order[line] = order[other];
        order[other] = keep;
    }
    for (size_t line = 0; line < lines; line++)
        *(char **)(block + order[line] * LINE) = block + order[(line + 1) % lines] * LINE;
    free(order);
}

static void chase(char *block, size_t lines, long rounds) {
    char *at = block;
    for (; rounds > 0; rounds--) {
        size_t left = lines;
        __asm__ volatile("1: movq (%0), %0\n dec %1\n jnz 1b" : "+r"(at), "+r"(left) : : "memory", "cc");
    }
}

static int copy(char *block, size_t bytes) {
    int sink = open("/dev/null", O_WRONLY), source = open("/dev/zero", O_RDONLY);
    if (sink < 0 || source < 0)
        return 1;
    mark(PATTERN_BEGINS);
    ssize_t written = write(sink, block, bytes);
    ssize_t given = read(source, block, bytes);
    mark(PATTERN_ENDS);
    return written != (ssize_t)bytes || given != (ssize_t)bytes;
}

int main(int count, char **arguments) {
    if (count < 3)
        return 2;
    const char *what = arguments[1];
    size_t bytes = strtoul(arguments[2], NULL, 0);
    long first = count > 3 ? strtol(arguments[3], NULL, 0) : 0, second = count > 4 ? strtol(arguments[4], NULL, 0) : 0;
    size_t length = strcmp(what, "stride") ? bytes : bytes * (size_t)first;
    char *block = aligned_alloc(PAGE, (length + PAGE) / PAGE * PAGE);
    if (!block)
        return 1;
    memset(block, 0, length);
    if (!strcmp(what, "copy"))
        return copy(block, bytes);
    if (!strcmp(what, "chase"))
        tie(block, bytes / LINE);
    mark(PATTERN_BEGINS);
    if (!strcmp(what, "sweep"))
        sweep(block, bytes, first, 0);
    else if (!strcmp(what, "write"))
        sweep(block, bytes, first, 1);
    else if (!strcmp(what, "stride"))
        stride(block, bytes, first, second, 0);
    else if (!strcmp(what, "random"))
        at_random(block, bytes, first);
    else if (!strcmp(what, "chase"))
        chase(block, bytes / LINE, first);
    else if (!strcmp(what, "straddle"))
        stride(block, LINE, (long)(bytes / LINE) - 1, first, LINE - 4);
    else
        return 2;
    mark(PATTERN_ENDS);
    free(block);
    return 0;
}
