/* places.c: memory in which a program may keep its only pointer. In each, blocks are kept intact through collections;
 * when the words are cleared, they are reclaimed.
 */
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Blocks that may be kept although no known word holds them: words that equal addresses by chance, or are left in
 * registers and dead frames. One, mostly none. */
enum { SPARED = 1, PAGE = 4096 };

static struct kept kept;

static void clear(void *volatile *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        words[i] = NULL;
}

static void keeps(const char *where, void *volatile *words) {
    static uint64_t seed = 100;
    for (int pointing = BEGINNING; pointing < (mode() == GUARD ? END + 1 : END); pointing++) {
        keep(&kept, where, words, KEPT, pointing, ++seed);
        scrub_stack(SCRUB);
        check_kept(&kept);
        clear(words, KEPT);
        check_gone(&kept, SPARED);
        keep(&kept, where, words, 0, pointing, ++seed);
        scrub_stack(SCRUB);
        check_kept(&kept);
        clear(words, 1);
        /* A stale word would keep a part of the chain. */
        check_gone(&kept, KEPT / 4);
    }
}

static void *map(size_t bytes, int protection, int flags, int file) {
    void *found = mmap(NULL, bytes, protection, flags, file, 0);
    CHECK(found != MAP_FAILED, "mmap of %zu bytes: errno %d", bytes, errno);
    return found;
}

static void *volatile static_words[KEPT];
static void *volatile data_words[KEPT] = {(void *)1};
static __thread void *volatile thread_words[KEPT];

CASE(PLAIN, place_static, "pointers in static data") {
    keeps("bss", static_words);
    keeps("data", data_words);
    keeps("thread-local data of the main thread", thread_words);
}

CASE(PLAIN, place_block, "pointers in blocks: small, large, moved by realloc") {
    static void *volatile *table;
    for (size_t size = KEPT * sizeof(void *); size < 3000000; size *= 7) {
        table = calloc(1, size);
        CHECK(table, "calloc gave null");
        keeps("the beginning of a block", table);
        keeps("the end of a block", table + size / sizeof(void *) - KEPT);
        keep(&kept, "a block that is moved", table, KEPT, 0, 17);
        table = realloc((void *)table, size * 3);
        CHECK(table, "realloc gave null");
        check_kept(&kept);
        clear(table, KEPT);
        check_gone(&kept, SPARED);
        free((void *)table);
        table = NULL;
    }
}

CASE(PLAIN, place_mapped, "pointers in memory that the program mapped") {
    void *volatile *words = map(64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    keeps("a mapping", words);
    keeps("the end of a mapping", words + 64 * PAGE / sizeof(void *) - KEPT);
    munmap((void *)words, 64 * PAGE);
    words = map(64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    keeps("a shared mapping", words);
    keeps("page 60 of a shared mapping", words + 60 * PAGE / sizeof(void *));
}

CASE(PLAIN, place_read_only, "pointers in memory that was made read-only, and writable again") {
    void *volatile *words = map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    keep(&kept, "a mapping that was made read-only", words, KEPT, 0, 31);
    CHECK(mprotect((void *)words, PAGE, PROT_READ) == 0, "mprotect: errno %d", errno);
    scrub_stack(SCRUB);
    check_kept(&kept);
    CHECK(mprotect((void *)words, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect: errno %d", errno);
    check_kept(&kept);
    clear(words, KEPT);
    check_gone(&kept, SPARED);
}

static int memory_file(size_t bytes) {
    int file = memfd_create("proof", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, (off_t)bytes) == 0, "memfd_create: errno %d", errno);
    return file;
}

CASE(PLAIN, place_file, "pointers in private and shared mappings of a file") {
    int file = memory_file(16 * PAGE);
    keeps("a shared mapping of a file",
          (void *volatile *)map(16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file) + PAGE / 8);
    keeps("a private mapping of a file",
          (void *volatile *)map(16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file) + 2 * PAGE / 8);
}

CASE(PLAIN, place_mapped_twice, "pointers written through one mapping of a file that is then unmapped: another mapping holds them") {
    int file = memory_file(4 * PAGE);
    void *volatile *written = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    void *volatile *other = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    keep(&kept, "a file that is mapped twice", written, KEPT, 0, 41);
    munmap((void *)written, 4 * PAGE);
    scrub_stack(SCRUB);
    /* No page of the other mapping has been touched: it has no entries in the process's page tables. */
    check_kept(&kept);
    clear(other, KEPT);
    check_gone(&kept, SPARED);
}

/* A file on a disk, as a rule. */
static int disk_file(size_t bytes) {
    char name[] = "/tmp/proof-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && ftruncate(file, (off_t)bytes) == 0, "mkstemp: errno %d", errno);
    unlink(name);
    return file;
}

static int (*const files[2])(size_t) = {memory_file, disk_file};

CASE(PLAIN, place_shared_in_child, "pointers in shared memory and in shared files, in a child of fork that has not touched them") {
    for (int i = 0; i < 3; i++) {
        int file = i ? files[i - 1](4 * PAGE) : -1;
        void *volatile *words = map(4 * PAGE, PROT_READ | PROT_WRITE, i ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, file);
        keep(&kept, "shared memory in a child of fork", words, KEPT, 0, 43);
        scrub_stack(SCRUB);
        int child = fork();
        if (child == 0) {
            check_kept(&kept);
            _exit(0);
        }
        reap(child, 20, "the child");
        clear(words, KEPT);
    }
}

CASE(PLAIN, place_let_go, "pointers in pages of shared files that the page tables, or memory, have let go") {
    static const int advice[2] = {MADV_DONTNEED, 21 /* MADV_PAGEOUT */};
    for (int i = 0; i < 4; i++) {
        void *volatile *words = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, files[i / 2](4 * PAGE));
        keep(&kept, "a page that was let go", words + PAGE / 8, KEPT, 0, 44);
        CHECK(msync((void *)words, 4 * PAGE, MS_SYNC) == 0, "msync: errno %d", errno);
        madvise((void *)words, 4 * PAGE, advice[i % 2]);
        scrub_stack(SCRUB);
        check_kept(&kept);
        clear(words + PAGE / 8, KEPT);
        check_gone(&kept, SPARED);
    }
}

CASE(PLAIN, place_view, "pointers in shared files that can only be read, written through a mapping that is gone") {
    static const char zeros[PAGE];
    for (int i = 0; i < 2; i++) {
        int file = files[i](PAGE);
        void *volatile *words = map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file);
        map(PAGE, PROT_READ, MAP_SHARED, file);
        keep(&kept, "a view of a file", words, KEPT, 0, 45);
        munmap((void *)words, PAGE);
        scrub_stack(SCRUB);
        check_kept(&kept);
        CHECK(pwrite(file, zeros, PAGE, 0) == PAGE, "pwrite: errno %d", errno);
        check_gone(&kept, SPARED);
    }
}

CASE(PLAIN, place_cut, "pointers in what is left of a mapped file that was cut: no page after its end can be read") {
    static const int kinds[2] = {MAP_SHARED, MAP_PRIVATE};
    for (int i = 0; i < 4; i++) {
        int file = files[i / 2](4 * PAGE);
        void *volatile *words = map(4 * PAGE, PROT_READ | PROT_WRITE, kinds[i % 2], file);
        keep(&kept, "a file that was cut", words, KEPT, 0, 46);
        CHECK(ftruncate(file, PAGE) == 0, "ftruncate: errno %d", errno);
        scrub_stack(SCRUB);
        check_kept(&kept);
        clear(words, KEPT);
        check_gone(&kept, SPARED);
    }
}

CASE(PLAIN, place_sparse, "one pointer at the end of 256 GiB of untouched memory, found without reading all of it") {
    size_t bytes = (size_t)256 << 30;
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        not_applicable("the system does not reserve 256 GiB");
    size_t before = resident_bytes();
    uint64_t start = now_ns();
    keeps("the end of a sparse mapping", (void *volatile *)((char *)mapped + bytes - PAGE));
    if (collects()) {
        uint64_t each = (now_ns() - start) / 16;
        CHECK(each < UINT64_C(5000000000), "a collection took %llu ms", (unsigned long long)(each / 1000000));
        CHECK(resident_bytes() < before + ((size_t)64 << 20), "reading it made %zu bytes resident",
              resident_bytes() - before);
    }
}

/* --- structures ------------------------------------------------------------------------------------------------ */

struct link {
    struct link *next;
    uint64_t number;
    uint64_t rest[2];
};
static struct link *list;

APART static void build_list(size_t length) {
    for (size_t i = 0; i < length; i++) {
        struct link *link = malloc(sizeof *link);
        CHECK(link, "malloc gave null");
        *link = (struct link){list, i, {~(uint64_t)i, ~(uint64_t)0}};
        list = link;
    }
}

APART static void check_list(size_t length) {
    size_t at = length;
    for (const struct link *link = list; link; link = link->next) {
        at--;
        CHECK(link->number == at && link->rest[0] == ~(uint64_t)at, "link %zu of a list of %zu was overwritten", at,
              length);
    }
    CHECK(at == 0, "a list of %zu lost %zu links", length, at);
}

CASE(PLAIN, structure_list, "a list of a million links: marking does not exhaust the stack") {
    size_t length = effort(1000000, 200000);
    build_list(length);
    scrub_stack(SCRUB);
    for (int round = 0; round < 2; round++) {
        collect();
        churn((uint64_t)round, 2000);
        check_list(length);
    }
}

static struct link **wide;

APART static void build_wide(size_t width) {
    wide = calloc(width, sizeof *wide);
    CHECK(wide, "calloc gave null");
    for (size_t i = 0; i < width; i++) {
        struct link *outer = calloc(1, sizeof *outer), *inner = malloc(sizeof *inner);
        CHECK(outer && inner, "no blocks");
        *inner = (struct link){NULL, i, {~(uint64_t)i, 0}};
        outer->next = inner;
        wide[width - 1 - i] = outer;
    }
}

CASE(PLAIN, structure_wide, "a block of a million pointers: the mark stack may overflow, nothing is lost") {
    size_t width = effort(1000000, 200000);
    build_wide(width);
    scrub_stack(SCRUB);
    for (int round = 0; round < 2; round++) {
        collect();
        churn((uint64_t)round, 2000);
        for (size_t i = 0; i < width; i++) {
            const struct link *inner = wide[width - 1 - i]->next;
            CHECK(inner->number == i && inner->rest[0] == ~(uint64_t)i, "element %zu of %zu was overwritten", i, width);
        }
    }
}

APART static void build_ring(size_t length) {
    struct link *first = malloc(sizeof *first), *last = first;
    CHECK(first, "malloc gave null");
    for (size_t i = 1; i < length; i++) {
        last->next = malloc(sizeof *last);
        last = last->next;
        CHECK(last, "malloc gave null");
    }
    last->next = first;
    kept.address[0] = disguise(first);
    kept.count = 1;
    kept.where = "a ring that no other word points to";
}

CASE(PLAIN, structure_ring, "a ring that only points to itself is reclaimed") {
    if (mode() == GUARD)
        not_applicable("what was not freed is kept");
    build_ring(1000);
    check_gone(&kept, 0);
}
