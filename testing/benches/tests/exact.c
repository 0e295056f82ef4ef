/* An allocator with the shortest of paths, and, by SEARCH or CALL, with a fault that the gate must see. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEADER 16

struct block {
    size_t bytes;
    struct block *next;
};

static _Alignas(16) char arena[8 << 20];
static size_t used;
static struct block *lists[4096];

__attribute__((noinline)) static void *fresh(size_t class) {
    size_t bytes = HEADER + (class ? class : 1) * 16;
    if (used + bytes > sizeof arena) return NULL;
    struct block *block = (struct block *)(arena + used);
    used += bytes;
    block->bytes = class;
    return (char *)block + HEADER;
}

#ifdef CALL
__attribute__((noinline)) static struct block *head(size_t class) {
    __asm__ volatile("");
    return lists[class];
}
#else
static inline struct block *head(size_t class) { return lists[class]; }
#endif

void *malloc(size_t bytes) {
    size_t class = (bytes + 15) / 16;
    if (class >= 4096) return NULL;
#ifdef SEARCH
    /* The lists are gone through one by one: some twenty steps for forty bytes. */
    size_t found = 0;
    for (volatile size_t at = 0; at <= class; at++) found = at;
    class = found;
#endif
    struct block *block = head(class);
    if (!block) return fresh(class);
    lists[class] = block->next;
    return (char *)block + HEADER;
}

void free(void *at) {
    if (!at) return;
    struct block *block = (struct block *)((char *)at - HEADER);
    block->next = lists[block->bytes];
    lists[block->bytes] = block;
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *block = malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *at, size_t bytes) {
    void *block = malloc(bytes);
    if (at && block) {
        size_t old = ((struct block *)((char *)at - HEADER))->bytes * 16;
        memcpy(block, at, old < bytes ? old : bytes);
    }
    return block;
}
