/* limits.c: little memory, mappings that fail at critical times, threads that do not stop, a million large blocks. */
#include "proof.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "graph.h"
#include "heaptoll.h"

static struct kept kept;
static void *volatile static_words[KEPT];
static void *volatile *chain;

static size_t status_kib(const char *name) {
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    CHECK(length > 0, "cannot read /proc/self/status");
    text[length] = 0;
    const char *found = strstr(text, name);
    CHECK(found, "no %s in /proc/self/status", name);
    return strtoull(found + strlen(name) + 1, NULL, 10);
}

/* Allocates blocks of `size` until malloc fails; returns how many. */
APART static size_t take_all(size_t size, size_t most) {
    size_t count = 0;
    for (; count < most; count++) {
        errno = 0;
        void *volatile *block = malloc(size);
        if (!block) {
            CHECK(errno == ENOMEM, "malloc(%zu) gave null with errno %d instead of ENOMEM", size, errno);
            break;
        }
        memset((void *)block, 0x55, size < 4096 ? size : 4096);
        *block = (void *)chain;
        chain = block;
    }
    return count;
}

static int is_guard_layer(void) {
    const struct heaptoll_control *manager = control();
    return manager && strcmp(manager->name, "guard") == 0;
}

APART static void give_all(void) {
    while (chain) {
        void *volatile *next = *chain;
        free((void *)chain);
        chain = next;
    }
}

/* PROOF_LIMIT bytes of address space from the start of the process. */
static void start_limited(int resource) {
    struct rlimit limit;
    getrlimit(resource, &limit);
    size_t bytes = setting("PROOF_LIMIT", (size_t)1 << 30);
    if (limit.rlim_cur == bytes)
        return;
    limit.rlim_cur = limit.rlim_max = bytes;
    CHECK(setrlimit(resource, &limit) == 0, "setrlimit: errno %d", errno);
    execl("/proc/self/exe", "suite", case_name, (char *)NULL);
    fail("cannot start this program again: errno %d", errno);
}

static void fill_up(void) {
    keep(&kept, "static data while there is no memory", static_words, KEPT, 0, 1);
    size_t large = take_all((size_t)1 << 20, 100000), small = take_all(100, 10000000);
    note("%zu blocks of 1 MiB, %zu of 100 bytes", large, small);
    check_whole(&kept);
    int status = try_collect();
    CHECK(status == 0 || status == ENOTSUP || status == ENOMEM || status == EAGAIN, "collect answered %d", status);
    check_whole(&kept);
    give_all();
    scrub_stack(SCRUB);
    void *volatile again = malloc(large ? (size_t)1 << 20 : 1000);
    /* A pass of the layer needs memory, too: without it all that was freed waits. */
    if (!again && is_guard_layer() && try_collect() != 0)
        note("no memory for a pass, and all that was freed waits");
    else
        CHECK(again || large + small == 0, "all was freed, and malloc still fails");
    free(again);
    check_whole(&kept);
}

CASE(PLAIN, limit_address_space, "RLIMIT_AS from the start: blocks, or null and ENOMEM, or a message and an end") {
    start_limited(RLIMIT_AS);
    fill_up();
}

CASE(PLAIN, limit_data, "the same with RLIMIT_DATA") {
    start_limited(RLIMIT_DATA);
    fill_up();
}

CASE(PLAIN, limit_collects_first, "out of memory: what is unreachable is collected before a request is refused") {
    needs_collector();
    start_limited(RLIMIT_AS);
    size_t bytes = setting("PROOF_LIMIT", (size_t)1 << 30), sum = 0;
    while (sum < bytes * 3) {
        void *volatile block = malloc(100000);
        CHECK(block, "null after %zu MiB, of which next to nothing is held", sum >> 20);
        memset(block, 1, 1000);
        sum += 100000;
    }
}

CASE(PLAIN, limit_lowered, "no further address space while the program runs: collections end, nothing is lost") {
    keep(&kept, "static data with no further address space", static_words, KEPT, 0, 2);
    take_all(64, 200000);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = status_kib("VmSize:") * 1024;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit: errno %d", errno);
    for (int i = 0; i < 5; i++) {
        int status = try_collect();
        CHECK(status == 0 || status == ENOTSUP || status == ENOMEM || status == EAGAIN, "collect answered %d", status);
        check_whole(&kept);
        size_t more = take_all(3000, 2000);
        note("collect answered %d, then %zu blocks", status, more);
    }
    give_all();
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    check_kept(&kept);
}

/* From now on mmap, mremap, brk and mprotect fail with ENOMEM in every thread. */
static void refuse_mappings(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        not_applicable("no seccomp here");
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM,
          "the filter does not hold");
}

CASE(PLAIN, limit_refused, "every mapping fails from some time on, also in the first collection") {
    keep(&kept, "static data while mappings are refused", static_words, KEPT, 0, 3);
    take_all(48, 300000);
    refuse_mappings();
    for (int i = 0; i < 5; i++) {
        int status = try_collect();
        CHECK(status == 0 || status == ENOTSUP || status == ENOMEM || status == EAGAIN, "collect answered %d", status);
        check_whole(&kept);
        size_t more = take_all(5000, 3000);
        note("collect answered %d, then %zu blocks", status, more);
        if (i % 2)
            give_all();
    }
    check_whole(&kept);
}

CASE(PLAIN, limit_refused_graph, "the same for four threads in the middle of a graph") {
    graph_start(4, 5);
    graph_round(600, 0);
    graph_check("before mappings are refused");
    refuse_mappings();
    for (int i = 0; i < 3; i++) {
        int status = try_collect();
        CHECK(status == 0 || status == ENOTSUP || status == ENOMEM || status == EAGAIN, "collect answered %d", status);
        graph_check("while mappings are refused");
    }
    _exit(0);
}

/* --- threads that do not stop ------------------------------------------------------------------------------------ */

static int stubborn_ready, released;
static volatile int stubborn_tid;
enum how { RAW, BY_PTHREAD, RAW_ASLEEP };

static void *stubborn(void *argument) {
    enum how how = (enum how)(uintptr_t)argument;
    prctl(PR_SET_NAME, "stubborn");
    stubborn_tid = (int)syscall(SYS_gettid);
    uint64_t all = ~UINT64_C(0), before = 0;
    sigset_t set, old;
    sigfillset(&set);
    if (how == BY_PTHREAD)
        pthread_sigmask(SIG_BLOCK, &set, &old);
    else
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    set_flag(&stubborn_ready, 1);
    while (!get_flag(&released))
        if (how == RAW_ASLEEP)
            usleep(1000);
        else
            __asm__ volatile("pause" ::: "memory");
    if (how == BY_PTHREAD)
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    else
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
    set_flag(&stubborn_ready, 2);
    await_flag(&released, 2, "the end");
    return NULL;
}

static void with_stubborn(enum how how) {
    needs_collector();
    keep(&kept, "static data with a thread that does not stop", static_words, KEPT, 0, 4);
    pthread_t thread = start_thread(stubborn, (void *)(uintptr_t)how);
    await_flag(&stubborn_ready, 1, "the thread that will not stop");
    int answers[3];
    for (int i = 0; i < 3; i++) {
        uint64_t start = now_ns();
        answers[i] = try_collect();
        uint64_t ms = (now_ns() - start) / 1000000;
        note("collect answered %d after %llu ms, thread %d", answers[i], (unsigned long long)ms, stubborn_tid);
        if (how == BY_PTHREAD)
            CHECK(answers[i] == 0, "collect answered %d: pthread_sigmask keeps the collector from stopping a thread",
                  answers[i]);
        else {
            CHECK(answers[i] == EAGAIN || (how == RAW_ASLEEP && answers[i] == 0), "collect answered %d instead of EAGAIN",
                  answers[i]);
            CHECK(ms < 3000, "it was abandoned after %llu ms only", (unsigned long long)ms);
        }
        churn((uint64_t)i, 1000);
        check_whole(&kept);
    }
    set_flag(&released, 1);
    await_flag(&stubborn_ready, 2, "the thread to let signals through");
    check_kept(&kept);
    set_flag(&released, 2);
    join_thread(thread);
    for (int i = 0; i < KEPT; i++)
        static_words[i] = NULL;
    check_gone(&kept, 1);
}

/* Run with TITHE_PATIENCE=300. */
CASE(PLAIN, stubborn_raw, "a thread that blocks every signal by the system call: reported, waited for, then the collection is abandoned") {
    with_stubborn(RAW);
}
CASE(PLAIN, stubborn_asleep, "the same, sleeping most of the time") { with_stubborn(RAW_ASLEEP); }
CASE(PLAIN, stubborn_pthread, "a thread that blocks every signal by pthread_sigmask is stopped all the same") {
    with_stubborn(BY_PTHREAD);
}

static void no_signal(int number) { (void)number; }

CASE(PLAIN, stubborn_handlers, "a program that handles every signal itself: collections succeed or are abandoned") {
    keep(&kept, "static data in a program that handles every signal", static_words, KEPT, 0, 6);
    struct sigaction own = {.sa_handler = no_signal, .sa_flags = SA_RESTART};
    pthread_t thread = start_thread(stubborn, (void *)(uintptr_t)BY_PTHREAD);
    for (int number = 1; number <= 64; number++)
        if (number != SIGSEGV && number != SIGBUS && number != SIGABRT)
            sigaction(number, &own, NULL);
    await_flag(&stubborn_ready, 1, "a thread");
    for (int i = 0; i < 2; i++) {
        int status = try_collect();
        note("collect answered %d", status);
        CHECK(status == 0 || status == EAGAIN || status == ENOTSUP, "collect answered %d", status);
        churn(5, 300);
        check_whole(&kept);
    }
    set_flag(&released, 1);
    await_flag(&stubborn_ready, 2, "a thread");
    set_flag(&released, 2);
    join_thread(thread);
}

/* --- a million large blocks --------------------------------------------------------------------------------------- */

enum { LARGE = 1000 };
static void *volatile large[LARGE];

static size_t mappings(void) {
    char text[4096];
    size_t lines = 0;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t length; (length = read(file, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < length; i++)
            lines += text[i] == '\n';
    close(file);
    return lines;
}

APART static void take_large(size_t count, size_t *most) {
    struct rng rng = {7};
    for (size_t i = 0; i < count; i++) {
        size_t at = rng_below(&rng, LARGE), size = 33000 + rng_below(&rng, rng_below(&rng, 10) ? 100000 : 1500000);
        uint64_t *old = large[at];
        if (old) {
            CHECK(old[0] == at && old[1] == ~(uint64_t)at, "large block %zu was overwritten", at);
            free(old);
        }
        uint64_t *block = malloc(size);
        CHECK(block, "malloc(%zu) gave null", size);
        block[0] = at;
        block[1] = ~(uint64_t)at;
        large[at] = block;
        block[size / 8 - 1] = 1;
        if (i % (count / 50) == 0) {
            size_t lines = mappings();
            *most = lines > *most ? lines : *most;
        }
    }
}

CASE(PLAIN, large_million, "a million large blocks, a thousand at a time: few mappings, memory goes back to the system") {
    size_t most = 0, count = setting("PROOF_BLOCKS", effort(1000000, 100000));
    size_t before = resident_bytes();
    take_large(count, &most);
    size_t full = resident_bytes();
    for (size_t i = 0; i < LARGE; i++) {
        free(large[i]);
        large[i] = NULL;
    }
    scrub_stack(SCRUB);
    collect();
    size_t after = resident_bytes();
    note("%zu lines in maps at most; resident %zu KiB before, %zu KiB with %d blocks, %zu KiB after", most, before >> 10,
         full >> 10, LARGE, after >> 10);
    CHECK(most < 100 || mode() == NO_COLLECTOR, "%zu mappings", most);
    CHECK(after < before + ((size_t)6 << 20) || mode() == NO_COLLECTOR, "%zu KiB are resident, %zu KiB were before",
          after >> 10, before >> 10);
}

/* --- addresses in mappings that are not scanned
   ------------------------------------------------------------------------- */

typedef int roots_function(const void *, const void *);

CASE(PLAIN, roots_added, "words in memory that is not scanned keep nothing, unless they are added as roots") {
    void *symbols[2] = {dlsym(RTLD_DEFAULT, "tithe_add_roots"), dlsym(RTLD_DEFAULT, "tithe_remove_roots")};
    roots_function *add, *take;
    memcpy(&add, &symbols[0], sizeof add);
    memcpy(&take, &symbols[1], sizeof take);
    if (!add || !take || !collects())
        not_applicable("it has no function to add roots");
    /* A file with a name that is mapped privately: the program has written it by write. */
    char name[] = "/tmp/proof-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0, "mkstemp: errno %d", errno);
    keep(&kept, "roots that were added", static_words, KEPT, 0, 9);
    CHECK(write(file, (const void *)static_words, sizeof static_words) == sizeof static_words, "write: errno %d", errno);
    void *seen = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(seen != MAP_FAILED, "mmap: errno %d", errno);
    CHECK(add(seen, (char *)seen + sizeof static_words) == 0, "tithe_add_roots");
    for (int i = 0; i < KEPT; i++)
        static_words[i] = NULL;
    scrub_stack(SCRUB);
    check_kept(&kept);
    CHECK(take(seen, (char *)seen + sizeof static_words) == 0, "tithe_remove_roots");
    CHECK(take(seen, (char *)seen + sizeof static_words) == ENOENT, "tithe_remove_roots of a range that was not added");
    check_gone(&kept, 1);
    unlink(name);
}

CASE(PLAIN, limit_refused_takes_nothing, "a request far beyond the limit fails and leaves memory for others") {
    void *block = malloc(100000);
    CHECK(block, "malloc gave null");
    size_t before = status_kib("VmSize");
    struct rlimit limit = {(before + 512 * 1024) * 1024, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    void *volatile much = malloc((size_t)16 << 30);
    CHECK(!much, "16 GiB of 512 MiB");
    size_t taken = status_kib("VmSize") - before;
    CHECK(taken < 16 * 1024, "a refused request took %zu KiB", taken);
    free(block);
}

CASE(PLAIN, limit_descriptors, "no file descriptor is free: a collection is abandoned, and the next one succeeds when there is one") {
    struct rlimit few = {64, 64};
    int files[64], count = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit: errno %d", errno);
    keep(&kept, "static data, with no free descriptor", static_words, KEPT, 0, 10);
    while ((files[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    CHECK(!collects() || try_collect() == EAGAIN, "a collection does not need a descriptor");
    check_whole(&kept);
    while (count > 0)
        close(files[--count]);
    check_kept(&kept);
}
