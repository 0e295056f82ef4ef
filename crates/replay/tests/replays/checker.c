/* A manager that forwards to glibc's functions and watches: each block is freed once, and every call on a block of at
 * least TAGGED bytes is logged in the order in which it was made. The log is a shared file, for the driver leaves by
 * _exit. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TAGGED 100000
#define LIVE 0x6c6976656c697665u
#define DEAD 0x6465616464656164u
#define CAPACITY (1 << 20)

extern void *__libc_malloc(size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

struct header {
    void *base;
    uint64_t size, state, zero;
};
struct log {
    _Atomic uint64_t entries, others;
    struct {
        uint64_t kind, size;
    } entry[CAPACITY];
};
static struct log *book;

static struct log *opened(void) {
    if (!book && environ) {
        const char *path = getenv("CHECKER_LOG");
        int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
        if (file >= 0) {
            void *mapped = mmap(NULL, sizeof(struct log), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            close(file);
            if (mapped != MAP_FAILED) book = mapped;
        }
    }
    return book;
}

static void note(uint64_t kind, uint64_t size) {
    struct log *log = opened();
    if (!log) return;
    if (size < TAGGED) {
        log->others++;
        return;
    }
    uint64_t at = log->entries++;
    if (at < CAPACITY) log->entry[at].kind = kind, log->entry[at].size = size;
}

static void *make(size_t align, size_t size, uint64_t kind) {
    size_t before = align > sizeof(struct header) ? align : sizeof(struct header);
    char *base = __libc_memalign(align < 16 ? 16 : align, before + size);
    if (!base) return NULL;
    struct header *header = (struct header *)(base + before) - 1;
    *header = (struct header){base, size, LIVE, 0};
    note(kind, size);
    return base + before;
}

static struct header *live(void *block) {
    struct header *header = (struct header *)block - 1;
    if (header->state != LIVE) abort();
    return header;
}

static void end(void *block) {
    struct header *header = live(block);
    header->state = DEAD;
    __libc_free(header->base);
}

void *malloc(size_t size) { return make(16, size, 0); }
void *calloc(size_t count, size_t size) {
    void *block = make(16, count * size, 1);
    return block ? memset(block, 0, count * size) : block;
}
void *memalign(size_t align, size_t size) { return make(align, size, 2); }
void *aligned_alloc(size_t align, size_t size) { return make(align, size, 2); }
int posix_memalign(void **block, size_t align, size_t size) {
    *block = make(align, size, 2);
    return *block ? 0 : ENOMEM;
}
void *realloc(void *block, size_t size) {
    if (!block) return malloc(size);
    size_t old = live(block)->size;
    void *other = make(16, size, 4);
    if (!other) return NULL;
    memcpy(other, block, old < size ? old : size);
    end(block);
    return other;
}
void free(void *block) {
    if (!block) return;
    note(5, live(block)->size);
    end(block);
}
