/* reasons.c: why blocks are kept. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#include "check.h"

static char text[1 << 16];
static char expected[1 << 12];

/* The address is inverted again where no copy of it stays on the stack. */
static NOINLINE size_t why(uintptr_t turned, size_t offset) {
    return tithe_why((char *)~turned + offset, text, sizeof text);
}

static void *volatile datum;
static __thread void *volatile thread_datum;
static uintptr_t links[4];

/* A large block that points to the last byte of a middle one, which points into a small one. */
static NOINLINE void build_links(void *volatile *place) {
    char *large = tithe_calloc(1, 100000), *middle = tithe_calloc(1, 2000), *small = tithe_calloc(1, 40);
    CHECK(large && middle && small);
    *place = large + 4000;
    *(void **)(large + 80000) = middle + 1999;
    *(void **)(middle + 16) = small + 24;
    links[0] = ~(uintptr_t)large;
    links[1] = ~(uintptr_t)middle;
    links[2] = ~(uintptr_t)small;
}

/* Words that build_links has left below this frame would be in the frame of the next call. */
static NOINLINE void build_chain(void *volatile *place) {
    build_links(place);
    wipe();
}

/* The lines below a root's, from the chain that build_chain has built. */
static NOINLINE const char *below(void) {
    char *large = shown(links[0]), *middle = shown(links[1]), *small = shown(links[2]);
    snprintf(expected, sizeof expected,
             "-> %p\n"
             "block %p of %zu bytes, word at + 80000 -> %p\n"
             "block %p of %zu bytes, word at + 16 -> %p\n"
             "block %p of %zu bytes, queried at + 30\n",
             large + 4000, large, whole_size(large), middle + 1999, middle, whole_size(middle), small + 24, small,
             whole_size(small));
    memset(links, 0, sizeof links);
    return expected;
}

/* Queries the small block, clears all other copies of the addresses, and compares. */
static NOINLINE void expect_chain(const char *root) {
    uintptr_t small = links[2];
    wipe();
    size_t length = why(small, 30);
    const char *lines = below();
    size_t start = strlen(root);
    if (strncmp(text, root, start) != 0 || strcmp(text + length - strlen(lines), lines) != 0 ||
        strlen(text) != length || memchr(text, '\n', length - strlen(lines))) {
        fprintf(stderr, "expected: %s... %s\nwritten: %s\n", root, lines, text);
        exit(1);
    }
    memset(text, 0, sizeof text);
    memset(expected, 0, sizeof expected);
}

static _Atomic int turn;
static _Atomic pid_t sleeper;

static void *holds(void *nothing) {
    void *volatile place[4];
    build_chain(&place[1]);
    sleeper = gettid();
    turn = 1;
    while (turn == 1) usleep(1000);
    place[1] = NULL;
    return nothing;
}

void case_chain(void) {
    char root[4096], path[2048];
    errno = 99;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(length > 0);
    path[length] = 0;

    build_chain(&datum);
    char *base = NULL;
    extern char __executable_start;
    base = &__executable_start;
    snprintf(root, sizeof root, "static datum %s + %p at %p ", path, (void *)((char *)&datum - base), (void *)&datum);
    expect_chain(root);
    datum = NULL;

    /* The calling thread's stack. */
    void *volatile local[2];
    build_chain(&local[1]);
    snprintf(root, sizeof root, "stack of thread %d at %p ", gettid(), (void *)&local[1]);
    expect_chain(root);
    local[1] = NULL;

    /* Another thread's. */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, holds, NULL) == 0);
    while (turn == 0) usleep(1000);
    snprintf(root, sizeof root, "stack of thread %d at ", sleeper);
    expect_chain(root);
    turn = 2;
    CHECK(pthread_join(thread, NULL) == 0);

    /* Memory that the program mapped. */
    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK((void *)page != MAP_FAILED);
    build_chain(&page[12]);
    snprintf(root, sizeof root, "mapping /dev/zero (deleted) + 0x60 at %p ", (void *)&page[12]);
    expect_chain(root);

    page[12] = NULL;

    /* A root that was added: a private view of a file with a name, which is not read by itself. */
    int file = named_file();
    CHECK(ftruncate(file, 4096) == 0);
    void *volatile *view = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK((void *)view != MAP_FAILED);
    build_chain(&datum);
    CHECK(pwrite(file, (void *)&datum, sizeof datum, 12 * sizeof datum) == sizeof datum);
    datum = NULL;
    CHECK(tithe_add_roots((void *)view, (void *)(view + 512)) == 0);
    snprintf(root, sizeof root, "added root at %p ", (void *)&view[12]);
    expect_chain(root);
    CHECK(tithe_remove_roots((void *)view, (void *)(view + 512)) == 0);

    /* Thread-local data. */
    build_chain(&thread_datum);
    wipe();
    CHECK(why(links[2], 30) > 0);
    char place[64];
    snprintf(place, sizeof place, " at %p ", (void *)&thread_datum);
    CHECK(strstr(text, place));
    CHECK(errno == 99);
}

static NOINLINE void make_one(void) { links[3] = ~(uintptr_t)tithe_malloc(64); }

void case_why(void) {
    errno = 99;
    /* No block, and a block that nothing references. */
    CHECK(tithe_why(NULL, text, sizeof text) == 0 && tithe_why((void *)&datum, text, sizeof text) == 0);
    CHECK(tithe_why(case_why, NULL, 0) == 0);
    make_one();
    wipe();
    CHECK(tithe_is_live(shown(links[3])) == 1);
    wipe();
    CHECK(why(links[3], 0) == 0);
    datum = tithe_malloc(64);
    tithe_free((void *)datum);
    CHECK((tithe_why((void *)datum, text, sizeof text) == 0) == frees());
    datum = tithe_malloc_atomic(64);
    CHECK(tithe_why((void *)datum, text, sizeof text) > 0);
    CHECK(strncmp(text, "static datum ", 13) == 0);

    /* The length is that of the whole text, however little of it fits. */
    build_chain(&datum);
    wipe();
    size_t whole = why(links[2], 0);
    CHECK(whole > 100 && strlen(text) == whole && text[whole - 1] == '\n');
    for (size_t capacity = 0; capacity < whole + 3; capacity += capacity < 4 ? 1 : 31) {
        static char part[1 << 12];
        memset(part, 'x', sizeof part);
        CHECK(tithe_why(shown(links[2]), part, capacity) == whole);
        size_t fits = capacity == 0 ? 0 : capacity - 1 < whole ? capacity - 1 : whole;
        CHECK(memcmp(part, text, fits) == 0);
        CHECK(capacity == 0 || part[fits] == 0);
        CHECK(part[capacity > fits ? capacity : fits + 1] == 'x');
    }
    CHECK(tithe_why(shown(links[2]), NULL, 100) == whole);

    /* A shorter chain is preferred to a longer one. */
    static void *volatile shortcut;
    shortcut = shown(links[2]);
    wipe();
    CHECK(why(links[2], 0) < whole && shortcut);
    int lines = 0;
    for (char *at = text; *at; at++) lines += *at == '\n';
    CHECK(lines == 2 && strncmp(text, "static datum ", 13) == 0);

    /* A long list: no limit, and no recursion. */
    void **last = NULL;
    for (int at = 0; at < 300000; at++) {
        void **block = tithe_malloc(32);
        memset(block, 0, 32);
        block[0] = last;
        if (at == 0) links[3] = ~(uintptr_t)block;
        last = block;
    }
    datum = last;
    last = NULL;
    wipe();
    CHECK(why(links[3], 0) > 300000 * 40);
    /* The queries have changed nothing. */
    CHECK(tithe_collect() == 0 && tithe_is_live((void *)datum) == 1 && tithe_is_live(shown(links[3])) == 1);
    CHECK(errno == 99);
}

/* The addresses are inverted in place, so that only the register holds them. */
static void *in_register(void *vector) {
    uintptr_t turned = links[3];
    sleeper = gettid();
    if (vector) {
        __asm__ volatile(
            "movq %0, %%xmm7\n pcmpeqd %%xmm6, %%xmm6\n pxor %%xmm6, %%xmm7\n movl $1, (%1)\n"
            "1: pause\n cmpl $1, (%1)\n je 1b\n pxor %%xmm7, %%xmm7"
            :
            : "r"(turned), "r"(&turn)
            : "xmm6", "xmm7", "memory", "cc");
    } else {
        __asm__ volatile(
            "mov %0, %%r10\n not %%r10\n movl $1, (%1)\n 1: pause\n cmpl $1, (%1)\n je 1b\n xor %%r10d, %%r10d"
            :
            : "r"(turned), "r"(&turn)
            : "r10", "memory", "cc");
    }
    return NULL;
}

void case_registers(void) {
    for (uintptr_t vector = 0; vector < 2; vector++) {
        make_one();
        wipe();
        pthread_t thread;
        turn = 0;
        CHECK(pthread_create(&thread, NULL, in_register, (void *)vector) == 0);
        while (turn == 0) usleep(1000);
        char root[64];
        snprintf(root, sizeof root, "register of thread %d -> ", sleeper);
        wipe();
        CHECK(why(links[3], 0) > 0);
        CHECK(strncmp(text, root, strlen(root)) == 0);
        struct tithe_held held;
        CHECK(tithe_held(&held) == 0);
        /* Vector registers are saved on the stack, which holds the block as well. */
        if (!vector) CHECK(held.registers >= 64);
        turn = 2;
        CHECK(pthread_join(thread, NULL) == 0);
        wipe();
    }
}

static NOINLINE void fill(void *volatile *place, size_t bytes) {
    *place = tithe_calloc(1, bytes);
    CHECK(*place);
    wipe();
}

void case_held(void) {
    struct tithe_held before, held;
    errno = 99;
    CHECK(tithe_held(NULL) == EINVAL);
    CHECK(tithe_held(&before) == 0);
    const uint64_t much = 1 << 20;

    fill(&datum, much);
    CHECK(tithe_held(&held) == 0);
    CHECK(held.statics >= before.statics + much && held.statics < before.statics + much + 65536);
    CHECK(held.stacks < before.stacks + 65536 && held.mappings < before.mappings + 65536);

    void *volatile local[2];
    fill(&local[1], 2 * much);
    CHECK(tithe_held(&held) == 0);
    CHECK(held.stacks >= before.stacks + 2 * much && held.statics >= before.statics + much);

    void *volatile *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(page, 3 * much);
    CHECK(tithe_held(&held) == 0);
    CHECK(held.mappings >= before.mappings + 3 * much && held.stacks < before.stacks + 2 * much + 65536);

    /* What two sorts hold, neither holds alone. */
    page[1] = datum;
    CHECK(tithe_held(&held) == 0);
    CHECK(held.statics < before.statics + 65536 && held.mappings < before.mappings + 3 * much + 65536);
    page[1] = local[1];
    CHECK(tithe_held(&held) == 0);
    CHECK(held.statics >= before.statics + much && held.stacks < before.stacks + 65536);
    CHECK(errno == 99);
}

/* TITHE_WHY: the addresses of a first run, without randomisation, are those of a second. */
void case_variable(void) {
    if (!getenv("TITHE_WHY")) {
        CHECK(personality(ADDR_NO_RANDOMIZE) != -1);
        if (!getenv("AGAIN")) {
            setenv("AGAIN", "1", 1);
            execl("/proc/self/exe", "api", "variable", (char *)NULL);
            CHECK(!"execl returns");
        }
        build_chain(&datum);
        char address[32];
        snprintf(address, sizeof address, "%p", (void *)((char *)shown(links[2]) + 30));
        setenv("TITHE_WHY", address, 1);
        execl("/proc/self/exe", "api", "variable", (char *)NULL);
        CHECK(!"execl returns");
    }
    build_chain(&datum);
    char address[32];
    snprintf(address, sizeof address, "%p", (void *)((char *)shown(links[2]) + 30));
    CHECK(strcmp(address, getenv("TITHE_WHY")) == 0);
    memset(address, 0, sizeof address);
    wipe();
    CHECK(tithe_collect() == 0);
    /* The Rust test compares the last lines of standard error with these. */
    fputs(below(), stdout);
    datum = NULL;
    memset(expected, 0, sizeof expected);
}
