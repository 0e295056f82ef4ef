/* An allocator of the textbook kind, for the adversary to be proved on: no headers, units of 16 bytes, all bookkeeping
 * outside the heap, one heap that grows at its end. IDEAL_FIT selects the rule: first, best, next (from a rover, the
 * list in the order of freeing, the lower end of a block given out), leak (first fit whose free does nothing) or
 * power (first fit of sizes rounded up to powers of two). The heap
 * has 4 GiB at most, or IDEAL_HEAP_BYTES. With IDEAL_HEADER each block has 16 bytes in front, and is neither split nor
 * coalesced. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAP ((size_t)4 << 30)
#define NODES ((size_t)1 << 21)

struct node {
    size_t at, size; /* granules */
    struct node *before, *after; /* by address */
    struct node *previous, *next; /* in the ring of free blocks */
    int live;
};

static char *heap;
static struct node *nodes, *unused, **owner, *last, *first, *rover;
static size_t fresh, end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char fit;
static size_t most = HEAP, header;

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

static void begin(void) {
    heap = map(HEAP);
    nodes = map(NODES * sizeof *nodes);
    owner = map(HEAP / 16 * sizeof *owner);
    const char *name = getenv("IDEAL_FIT");
    fit = name ? name[0] : 'f';
    header = getenv("IDEAL_HEADER") != NULL;
    const char *bytes = getenv("IDEAL_HEAP_BYTES");
    if (bytes) most = strtoull(bytes, NULL, 10);
}

static struct node *node(void) {
    if (unused) {
        struct node *taken = unused;
        unused = taken->next;
        return taken;
    }
    if (fresh == NODES) abort();
    return &nodes[fresh++];
}

static void drop(struct node *node) {
    node->next = unused;
    unused = node;
}

static void ring_in(struct node *block) {
    if (!rover) {
        block->previous = block->next = rover = block;
        return;
    }
    block->previous = rover->previous;
    block->next = rover;
    rover->previous->next = block;
    rover->previous = block;
}

static void ring_out(struct node *block) {
    if (block->next == block) {
        rover = NULL;
        return;
    }
    block->previous->next = block->next;
    block->next->previous = block->previous;
    if (rover == block) rover = block->next;
}

static struct node *choose(size_t size) {
    struct node *found = NULL;
    if (fit == 'n') {
        struct node *at = rover;
        if (at) do {
            if (at->size >= size) return at;
        } while ((at = at->next) != rover);
        return NULL;
    }
    for (struct node *at = first; at; at = at->after) {
        if (at->live || at->size < size) continue;
        if (fit != 'b') return at;
        if (!found || at->size < found->size) found = at;
    }
    return found;
}

static struct node *grow(size_t size) {
    size_t have = last && !last->live && !header ? last->size : 0;
    if ((end + size - have) * 16 > most) return NULL;
    if (have) {
        end += size - have;
        last->size = size;
        return last;
    }
    struct node *block = node();
    *block = (struct node){.at = end, .size = size, .before = last};
    if (last) last->after = block;
    else first = block;
    last = block;
    end += size;
    ring_in(block);
    return block;
}

static void *allocate(size_t bytes) {
    size_t size = (bytes + 15) / 16 + header;
    if (size == 0) size = 1;
    if (fit == 'p' && size > 1) size = (size_t)1 << (64 - __builtin_clzll(size - 1));
    if (bytes > HEAP) return NULL;
    struct node *block = choose(size);
    if (!block) block = grow(size);
    if (!block) return NULL;
    rover = block->next;
    if (block->size > size && !header) {
        struct node *rest = node();
        *rest = (struct node){.at = block->at + size, .size = block->size - size, .before = block,
                              .after = block->after, .previous = block->previous, .next = block->next};
        if (rest->after) rest->after->before = rest;
        else last = rest;
        block->after = rest;
        block->size = size;
        /* The rest keeps the block's place in the ring. */
        if (block->next == block) {
            rest->previous = rest->next = rover = rest;
        } else {
            rest->previous->next = rest->next->previous = rest;
        }
    } else {
        ring_out(block);
    }
    block->live = 1;
    owner[block->at + header] = block;
    return heap + (block->at + header) * 16;
}

static void release(struct node *block) {
    owner[block->at + header] = NULL;
    block->live = 0;
    if (header) {
        ring_in(block);
        return;
    }
    struct node *after = block->after, *before = block->before;
    if (after && !after->live) {
        block->size += after->size;
        block->after = after->after;
        if (after->after) after->after->before = block;
        else last = block;
        ring_out(after);
        drop(after);
    }
    if (before && !before->live) {
        before->size += block->size;
        before->after = block->after;
        if (block->after) block->after->before = before;
        else last = before;
        drop(block);
    } else {
        ring_in(block);
    }
}

void *malloc(size_t bytes) {
    pthread_mutex_lock(&lock);
    if (!heap) begin();
    void *block = allocate(bytes);
    pthread_mutex_unlock(&lock);
    if (!block) errno = ENOMEM;
    return block;
}

void free(void *at) {
    if (!at) return;
    pthread_mutex_lock(&lock);
    struct node *block = owner[((char *)at - heap) / 16];
    if (!block) abort();
    if (fit != 'l') release(block);
    pthread_mutex_unlock(&lock);
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *block = malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

size_t malloc_usable_size(void *at) { return at ? owner[((char *)at - heap) / 16]->size * 16 - header * 16 : 0; }

void *realloc(void *at, size_t bytes) {
    void *block = malloc(bytes);
    size_t old = malloc_usable_size(at);
    if (block && at) {
        memcpy(block, at, old < bytes ? old : bytes);
        free(at);
    }
    return block;
}
