/* What the probes have in common: they report their live blocks and wait to be sampled. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST (1u << 21)

struct block {
    char *address;
    uint64_t requested, usable;
};

/* In a mapping of its own: no block. */
static struct block *blocks;
static size_t count;

static char *make(size_t bytes) {
    char *block = malloc(bytes);
    if (!block) _exit(3);
    if (!blocks) {
        blocks = mmap(NULL, MOST * sizeof *blocks, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (blocks == MAP_FAILED) _exit(3);
    }
    blocks[count++] = (struct block){block, bytes, malloc_usable_size(block)};
    return block;
}

static void drop(size_t at) {
    free(blocks[at].address);
    blocks[at] = blocks[--count];
}

static void write_all(const void *from, size_t bytes) {
    const char *at = from;
    while (bytes > 0) {
        ssize_t written = write(1, at, bytes);
        if (written <= 0) _exit(4);
        at += written;
        bytes -= (size_t)written;
    }
}

/* Bytes from `start` on that are on pages in memory, from the page map, one page at a time. */
static uint64_t present(int map, uint64_t start, uint64_t bytes) {
    uint64_t sum = 0;
    for (uint64_t at = start; at < start + bytes;) {
        uint64_t end = (at / 4096 + 1) * 4096, entry = 0;
        if (end > start + bytes) end = start + bytes;
        if (pread(map, &entry, 8, (off_t)(at / 4096 * 8)) != 8) _exit(5);
        if (entry >> 63) sum += end - at;
        at = end;
    }
    return sum;
}

/* Reports: number of blocks, resident bytes requested, resident bytes of slack, the blocks. Then waits for a byte. */
static void report(void) {
    int map = open("/proc/self/pagemap", O_RDONLY);
    uint64_t head[3] = {count, 0, 0};
    for (size_t at = 0; map >= 0 && at < count; at++) {
        uint64_t start = (uint64_t)blocks[at].address;
        head[1] += present(map, start, blocks[at].requested);
        head[2] += present(map, start + blocks[at].requested, blocks[at].usable - blocks[at].requested);
    }
    close(map);
    write_all(head, sizeof head);
    write_all(blocks, count * sizeof *blocks);
    char go;
    if (read(0, &go, 1) != 1) _exit(0);
}
