/* collector.c: a plain collector that passes its cases, with seeded defects that PROOF_MUTANT names. It shows that
 * cases can fail, and that they can be passed. One lock, everything stopped, marked and swept at once.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "heaptoll.h"

#define CHUNK ((size_t)65536)
#define SIGNAL (64 - 4)
enum { CLASSES = 64, LARGEST_SMALL = 16384, THREADS = 2048, OUT = THREADS + 8 };
enum kind { FREE_CHUNK, SMALL, HEAD, REST };

struct chunk {
    uint32_t kind, block, count, head;
};
struct range {
    uintptr_t low, high;
};

/* Of a block that waits in mode guard the bits are WAITING. */
enum { LIVE = 1, WAITING = 2 };
static char *heap, *live_bits, *mark_bits;
static uintptr_t *mark_stack;
static struct chunk *chunks;
static size_t chunk_count, used_chunks, rover, marked_top;
static void *free_lists[CLASSES];
static size_t class_bytes[CLASSES], classes, since, mapped_chunks, largest_mapped;
static int explicit_mode, collect_mode, guard_mode, patience = 2000, started;
static const char *mutant = "";
static uint64_t live_total, collections, pause_total;
static int reported;

static int is(const char *name) { return strcmp(mutant, name) == 0; }

/* --- lock --------------------------------------------------------------------------------------------------------- */

static int lock_word;

#define SAVE(registers)                                                                            \
    __asm__ volatile("movq %%rbx, 0(%0)\n movq %%rbp, 8(%0)\n movq %%r12, 16(%0)\n movq %%r13, 24(%0)\n" \
                     "movq %%r14, 32(%0)\n movq %%r15, 40(%0)\n"                                   \
                     :                                                                             \
                     : "r"(registers)                                                              \
                     : "memory")

/* Threads that wait for the lock count as stopped: the C library calls free at the end of a thread with every signal
 * blocked, and the signal to stop would not reach it. */
static int parked[THREADS];

static int is_parked(long tid) {
    for (int i = 0; i < THREADS; i++)
        if (__atomic_load_n(&parked[i], __ATOMIC_ACQUIRE) == tid)
            return 1;
    return 0;
}

__attribute__((noinline)) static void wait_for_lock(void) {
    int before = errno, own = (int)syscall(SYS_gettid), at = 0, seen = 0;
    /* The callee-saved registers, in memory. */
    uintptr_t registers[8];
    SAVE(registers);
    if (!is("not_parked"))
        for (at = 0; at < THREADS; at++, seen = 0)
            if (__atomic_compare_exchange_n(&parked[at], &seen, own, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                break;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &lock_word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    if (!is("not_parked") && at < THREADS)
        __atomic_store_n(&parked[at], 0, __ATOMIC_RELEASE);
    __asm__ volatile("" : : "r"(registers) : "memory");
    errno = before;
}

static void lock(void) {
    int seen = 0;
    if (!__atomic_compare_exchange_n(&lock_word, &seen, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        wait_for_lock();
}

static void unlock(void) {
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2) {
        int before = errno;
        syscall(SYS_futex, &lock_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        errno = before;
    }
}

static void unlock_child(void) {
    if (!is("fork_locked"))
        lock_word = 0;
}

static void report(const char *text) {
    if (reported++ == 0 || is("many_messages"))
        if (write(2, text, strlen(text)) < 0)
            return;
}

/* --- heap --------------------------------------------------------------------------------------------------------- */

static void *reserve(size_t bytes) {
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

static void on_stop(int number, siginfo_t *info, void *context);

static void start(void) {
    started = 1;
    const char *value = getenv("PROOF_MUTANT");
    if (value)
        mutant = value;
    value = getenv("TITHE_MODE");
    explicit_mode = value && strcmp(value, "explicit") == 0;
    collect_mode = value && strcmp(value, "collect") == 0;
    guard_mode = value && strcmp(value, "guard") == 0;
    value = getenv("TITHE_PATIENCE");
    if (value)
        patience = atoi(value);
    for (size_t bytes = 16; bytes <= LARGEST_SMALL; bytes = bytes < 128 ? bytes + 16 : bytes * 2) {
        class_bytes[classes++] = bytes;
        if (bytes >= 128 && bytes < LARGEST_SMALL)
            class_bytes[classes++] = bytes + bytes / 2;
    }
    /* Per chunk: itself, a byte a granule of live and of mark, half of it for the mark stack, its row. */
    for (size_t bytes = (size_t)1 << 36; bytes >= (size_t)1 << 21; bytes /= 2) {
        char *all = reserve(bytes + bytes / 8 + bytes / 2 + bytes / CHUNK * sizeof *chunks + CHUNK);
        if (!all)
            continue;
        heap = (char *)(((uintptr_t)all + CHUNK - 1) & ~(CHUNK - 1));
        live_bits = heap + bytes;
        mark_bits = live_bits + bytes / 16;
        mark_stack = (uintptr_t *)(void *)(mark_bits + bytes / 16);
        chunks = (struct chunk *)(void *)((char *)mark_stack + bytes / 2);
        chunk_count = bytes / CHUNK;
        break;
    }
    struct sigaction action = {.sa_sigaction = on_stop,
                               .sa_flags = SA_SIGINFO | (is("on_alternate") ? SA_ONSTACK : 0) | (is("no_restart") ? 0 : SA_RESTART)};
    sigaction(SIGNAL, &action, NULL);
    pthread_atfork(lock, unlock, unlock_child);
}

static size_t class_of(size_t bytes) {
    size_t at = 0;
    while (class_bytes[at] < bytes)
        at++;
    return at;
}

/* First fit from the rover on, then from the beginning. */
static char *find_chunks(size_t count, size_t alignment, uint32_t kind, uint32_t block) {
    size_t step = alignment > CHUNK ? alignment / CHUNK : 1;
    for (int whole = rover == 0; whole < 2; whole++)
        for (size_t at = whole ? 0 : rover; at + count <= chunk_count;) {
            size_t run = 0;
            while (run < count && chunks[at + run].kind == FREE_CHUNK)
                run++;
            if (run < count || ((uintptr_t)(heap + at * CHUNK) / CHUNK) % step) {
                at += run == count ? 1 : run + (chunks[at + run].kind == HEAD ? chunks[at + run].count : 1);
                continue;
            }
            for (size_t i = 0; i < count; i++)
                chunks[at + i] = (struct chunk){i ? REST : kind, block, (uint32_t)count, (uint32_t)at};
            if (count == 1 || rover == 0)
                rover = at + count;
            used_chunks = at + count > used_chunks ? at + count : used_chunks;
            mapped_chunks += count;
            largest_mapped = mapped_chunks > largest_mapped ? mapped_chunks : largest_mapped;
            return heap + at * CHUNK;
        }
    return NULL;
}

static int collect_locked(void);

static size_t granule(const void *block) { return (size_t)((const char *)block - heap) / 16; }

static void *take(size_t bytes, size_t alignment) {
    if (!started)
        start();
    if (bytes > PTRDIFF_MAX - CHUNK || alignment > PTRDIFF_MAX / 4) {
        errno = ENOMEM;
        return NULL;
    }
    /* The address one past a block's end lies in it. */
    bytes += guard_mode && !is("guard_no_end");
    if (bytes < 16)
        bytes = 16;
    if (alignment > 16 && bytes <= LARGEST_SMALL && alignment <= LARGEST_SMALL) {
        size_t power = alignment;
        while (power < bytes)
            power *= 2;
        bytes = power;
    }
    size_t limit = live_total > (8 << 20) ? live_total : 8 << 20;
    since += bytes;
    if (!explicit_mode && since > limit && !is("no_last_resort"))
        collect_locked();
    for (int tries = 0; tries < 2; tries++) {
        char *block = NULL;
        size_t whole = bytes;
        if (bytes <= LARGEST_SMALL && alignment <= LARGEST_SMALL) {
            size_t class = class_of(bytes);
            whole = class_bytes[class];
            if (!free_lists[class]) {
                char *chunk = find_chunks(1, 1, SMALL, (uint32_t)whole);
                for (size_t i = 0; chunk && i < CHUNK / whole; i++) {
                    *(void **)(void *)(chunk + i * whole) = free_lists[class];
                    free_lists[class] = chunk + i * whole;
                }
            }
            block = free_lists[class];
            if (block)
                free_lists[class] = *(void **)(void *)block;
        } else {
            size_t count = (bytes + CHUNK - 1) / CHUNK;
            whole = count * CHUNK;
            block = find_chunks(count, alignment, HEAD, 0);
        }
        if (block) {
            live_bits[granule(block)] = LIVE;
            live_total += whole;
            return block;
        }
        if (explicit_mode || is("no_last_resort") || collect_locked() != 0)
            break;
    }
    errno = ENOMEM;
    return NULL;
}

/* The block that contains an address, or null. */
static char *block_of(uintptr_t address, size_t *bytes) {
    if (address < (uintptr_t)heap || address >= (uintptr_t)heap + used_chunks * CHUNK)
        return NULL;
    struct chunk *chunk = &chunks[(address - (uintptr_t)heap) / CHUNK];
    char *block;
    if (chunk->kind == SMALL) {
        char *base = heap + (address - (uintptr_t)heap) / CHUNK * CHUNK;
        size_t at = (address - (uintptr_t)base) / chunk->block;
        if (at >= CHUNK / chunk->block)
            return NULL;
        block = base + at * chunk->block;
        *bytes = chunk->block;
    } else if (chunk->kind == HEAD || chunk->kind == REST) {
        block = heap + chunk->head * CHUNK;
        *bytes = chunk->count * CHUNK;
    } else
        return NULL;
    return live_bits[granule(block)] ? block : NULL;
}

static void give_back(char *block, size_t bytes) {
    live_bits[granule(block)] = 0;
    live_total -= bytes;
    struct chunk *chunk = &chunks[(size_t)(block - heap) / CHUNK];
    if (chunk->kind == SMALL) {
        memset(block, 0xdf, bytes);
        size_t class = class_of(bytes);
        *(void **)(void *)block = free_lists[class];
        free_lists[class] = block;
        return;
    }
    size_t head = chunk->head, count = chunk->count;
    mapped_chunks -= count;
    for (size_t i = 0; i < count; i++)
        chunks[head + i].kind = FREE_CHUNK;
    if (!is("keeps_memory")) {
        madvise(block, bytes, MADV_DONTNEED);
        madvise(live_bits + granule(block), bytes / 16, MADV_DONTNEED);
        madvise(mark_bits + granule(block), bytes / 16, MADV_DONTNEED);
    }
    rover = head < rover ? head : rover;
}

/* Mode guard: the block waits, clear, until a collection finds no word that leads to it. */
static void release(char *block, size_t bytes) {
    if (!guard_mode || is("guard_at_once")) {
        give_back(block, bytes);
        return;
    }
    if (live_bits[granule(block)] == WAITING)
        report("mutant: this block is free already\n");
    live_bits[granule(block)] = WAITING;
    if (!is("guard_keeps_data"))
        memset(block, 0, bytes);
}

/* --- stopping ----------------------------------------------------------------------------------------------------- */

static int stop_number, running_number, acknowledged;
static struct {
    uintptr_t sp, context, vectors, vectors_end, base;
    long tid;
} stopped[THREADS];
static int stopped_count;

static void on_stop(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    int before = errno, mine = __atomic_load_n(&stop_number, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&running_number, __ATOMIC_ACQUIRE) >= mine)
        return;
    const ucontext_t *seen = context;
    int at = __atomic_fetch_add(&stopped_count, 1, __ATOMIC_ACQ_REL);
    if (at < THREADS) {
        stopped[at].tid = syscall(SYS_gettid);
        uintptr_t vectors = (uintptr_t)seen->uc_mcontext.fpregs;
        stopped[at].sp = (uintptr_t)seen->uc_mcontext.gregs[REG_RSP];
        stopped[at].context = (uintptr_t)seen;
        stopped[at].vectors = vectors;
        /* The size that the kernel stores in the software part of the area. */
        stopped[at].vectors_end = vectors ? vectors + *(uint32_t *)(vectors + 464 + 4) : vectors;
        stopped[at].base = (uintptr_t)__builtin_thread_pointer();
    }
    __atomic_fetch_add(&acknowledged, 1, __ATOMIC_ACQ_REL);
    int value;
    /* A thread that waited for the lock was not waited for: a later stop may have ended by now. */
    while ((value = __atomic_load_n(&running_number, __ATOMIC_ACQUIRE)) < mine)
        syscall(SYS_futex, &running_number, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    errno = before;
}

static void resume(void) {
    __atomic_store_n(&running_number, stop_number, __ATOMIC_RELEASE);
    syscall(SYS_futex, &running_number, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void number_into(char *to, long number) {
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *to++ = digits[--count];
    *to = 0;
}

static int is_dead(long tid) {
    char path[64] = "/proc/self/task/", text[256] = {0};
    number_into(path + strlen(path), tid);
    strcat(path, "/stat");
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    const char *state = length > 0 ? strrchr(text, ')') : NULL;
    return !state || state[2] == 'Z' || state[2] == 'X';
}

static long signalled[THREADS];

static int has_stopped(long tid) {
    int count = __atomic_load_n(&acknowledged, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count && i < THREADS; i++)
        if (stopped[i].tid == tid)
            return 1;
    return 0;
}

/* 0, or EAGAIN with everything running again. */
static int stop(void) {
    static char entries[32768];
    long own = syscall(SYS_gettid), process = syscall(SYS_getpid);
    int count = 0, found_new;
    stopped_count = acknowledged = 0;
    memset(stopped, 0, sizeof stopped);
    __atomic_fetch_add(&stop_number, 1, __ATOMIC_RELEASE);
    uint64_t end = now_ms() + (uint64_t)patience;
    do {
        found_new = 0;
        int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (long length; folder >= 0 && (length = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
            for (long at = 0; at < length;) {
                struct dirent64 *entry = (void *)(entries + at);
                at += entry->d_reclen;
                long tid = atol(entry->d_name);
                int known = tid <= 0 || tid == own;
                for (int i = 0; i < count; i++)
                    known |= signalled[i] == tid;
                if (known || is_dead(tid) || count == THREADS)
                    continue;
                if (is("one_pass") && count >= 2)
                    continue;
                if (syscall(SYS_tgkill, process, tid, SIGNAL) == 0) {
                    signalled[count++] = tid;
                    found_new = 1;
                }
            }
        close(folder);
        for (;;) {
            int missing = 0;
            for (int i = 0; i < count; i++)
                missing += !has_stopped(signalled[i]) && !is_parked(signalled[i]) && !is_dead(signalled[i]);
            if (!missing)
                break;
            if (now_ms() > end && !is("no_patience_limit")) {
                resume();
                report("mutant: the thread stubborn would not stop\n");
                return EAGAIN;
            }
            struct timespec interval = {0, 50000};
            syscall(SYS_nanosleep, &interval, NULL);
        }
    } while (found_new);
    return 0;
}

/* --- marking ------------------------------------------------------------------------------------------------------ */

static struct range out[3 * THREADS + 8];
static int out_count;

static void consider(uintptr_t word) {
    size_t bytes;
    char *block = block_of(word, &bytes);
    if (!block || mark_bits[granule(block)] || (is("no_interior") && (uintptr_t)block != word))
        return;
    mark_bits[granule(block)] = 1;
    if (is("mark_stack_short") && marked_top >= 2000)
        return;
    mark_stack[marked_top++] = (uintptr_t)block;
}

static void drain(void) {
    while (marked_top) {
        size_t bytes;
        uintptr_t *words = (void *)block_of(mark_stack[--marked_top], &bytes);
        if (is("first_kilobyte") && bytes > 1024)
            bytes = 1024;
        if (is("no_heap_words"))
            continue;
        for (size_t i = 0; i < bytes / 8; i++)
            consider(words[i]);
    }
}

__attribute__((no_sanitize("address"))) static void scan(uintptr_t low, uintptr_t high, int from) {
    for (int i = from; i < out_count; i++)
        if (out[i].low < high && out[i].high > low) {
            if (out[i].low > low)
                scan(low, out[i].low, i + 1);
            if (out[i].high < high)
                scan(out[i].high, high, i + 1);
            return;
        }
    for (uintptr_t at = (low + 7) & ~(uintptr_t)7; at + 8 <= high; at += 8) {
        consider(*(volatile uintptr_t *)at);
        drain();
    }
}

/* Only pages that can be read: a mapping may be longer than its file, or a ring. */
static void scan_readable(uintptr_t low, uintptr_t high) {
    for (uintptr_t at = low; at < high; at += 4096) {
        char byte;
        struct iovec to = {&byte, 1}, from = {(void *)at, 1};
        if (is("past_end") || process_vm_readv((pid_t)syscall(SYS_getpid), &to, 1, &from, 1, 0) == 1)
            scan(at, at + 4096, 0);
    }
}

static int page_file;

/* Only pages that are present, or swapped out. */
static void scan_present(uintptr_t low, uintptr_t high) {
    static uint64_t pages[4096];
    for (uintptr_t at = low; at < high;) {
        size_t count = (high - at) / 4096 < 4096 ? (high - at) / 4096 : 4096;
        ssize_t got = pread(page_file, pages, count * 8, (off_t)(at / 4096 * 8));
        if (got <= 0) {
            scan(at, high, 0);
            return;
        }
        for (ssize_t i = 0; i < got / 8; i++, at += 4096)
            if (pages[i] >> 62)
                scan(at, at + 4096, 0);
    }
}

static void scan_maps(uintptr_t own_sp) {
    static char text[1 << 20];
    int file = open(is("self_maps") ? "/proc/self/maps" : "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    page_file = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t got; length < sizeof text - 1 && (got = read(file, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    close(file);
    text[length] = 0;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n'), *at = line;
        if (!end)
            break;
        *end = 0;
        uintptr_t low = strtoul(at, &at, 16), high = strtoul(at + 1, &at, 16);
        const char *flags = at + 1;
        int readable = flags[0] == 'r', writable = flags[1] == 'w', shared = flags[3] == 's';
        const char *name = strchr(line, '/');
        int special = strstr(line, "[v") != NULL, stack = strstr(line, "[stack]") != NULL, anonymous = !name;
        line = end + 1;
        if (low < (uintptr_t)(chunks + chunk_count) && high > (uintptr_t)heap)
            continue;
        if (!readable || special || (!writable && !shared && !anonymous))
            continue;
        if ((is("no_data") && name && !shared) || (is("no_shared") && shared) || (is("no_stack") && stack) ||
            (is("no_mapped") && anonymous && !stack) || (is("no_read_only") && !writable))
            continue;
        int was = out_count;
        if (is("from_sp"))
            for (int i = 0; i < stopped_count; i++)
                if (stopped[i].sp >= low && stopped[i].sp < high)
                    out[out_count++] = (struct range){low, stopped[i].sp - 128};
        if (is("from_sp") && own_sp >= low && own_sp < high)
            out[out_count++] = (struct range){low, own_sp};
        if (shared ? is("shared_present") : anonymous)
            scan_present(low, high);
        else
            scan_readable(low, high);
        out_count = was;
    }
    close(page_file);
}

static int dead(size_t at, size_t spared) {
    if (is("keeps_all") || (is("keeps_some") && spared % 20 == 0))
        return 0;
    return live_bits[at] && !mark_bits[at] && (!guard_mode || live_bits[at] == WAITING);
}

/* Mode guard: every block that is not freed is read. */
static void scan_unfreed(void) {
    for (size_t at = 0; at < used_chunks * CHUNK / 16; at++)
        if (live_bits[at] == LIVE) {
            consider((uintptr_t)heap + at * 16);
            drain();
        }
}

static void sweep(void) {
    size_t count = 0;
    for (size_t chunk = 0; chunk < used_chunks; chunk++) {
        size_t step = chunks[chunk].kind == SMALL ? chunks[chunk].block : CHUNK;
        if (chunks[chunk].kind != SMALL && chunks[chunk].kind != HEAD)
            continue;
        for (size_t i = 0; i < CHUNK / step; i++) {
            char *block = heap + chunk * CHUNK + i * step;
            size_t at = granule(block);
            if (!live_bits[at])
                continue;
            count++;
            int goes = dead(at, count) || (is("loses_some") && count % 5000 == 77);
            mark_bits[at] = 0;
            if (goes)
                give_back(block, step < CHUNK ? step : chunks[chunk].count * CHUNK);
        }
    }
}

__attribute__((noinline)) static int collect_from(uintptr_t *registers) {
    uint64_t start_ms = now_ms();
    if (chunk_count == 0)
        return ENOMEM;
    if (syscall(SYS_getpid) != getpid())
        return EAGAIN;
    int status = stop();
    since = 0;
    if (status)
        return status;
    uintptr_t own = (uintptr_t)registers;
    out_count = 0;
    out[out_count++] = (struct range){(uintptr_t)heap, (uintptr_t)(chunks + chunk_count)};
    for (int i = 0; i < stopped_count && i < THREADS; i++) {
        /* Words below the stack pointer are dead, except in the red zone and in what the kernel saved there. */
        if (is("no_registers"))
            out[out_count++] = (struct range){stopped[i].context - 16384, stopped[i].sp - 128};
        else if (is("no_red_zone"))
            out[out_count++] = (struct range){stopped[i].vectors_end, stopped[i].sp};
        if (is("no_vectors"))
            out[out_count++] = (struct range){stopped[i].vectors, stopped[i].vectors_end};
        if (is("no_upper_vectors"))
            out[out_count++] = (struct range){stopped[i].vectors + 512, stopped[i].vectors_end};
        if (is("no_thread_data"))
            out[out_count++] = (struct range){stopped[i].base - 2048, stopped[i].base + 2304};
    }
    /* The dead part of the collecting thread's stack, just below its frame. */
    out[out_count++] = (struct range){own - 65536, own};
    if (guard_mode && !is("guard_traces"))
        scan_unfreed();
    scan_maps(own);
    drain();
    sweep();
    resume();
    collections++;
    pause_total += (now_ms() - start_ms) * 1000000;
    return 0;
}

/* Frames as deep as those of a collection that has tables on its stack. */
__attribute__((noinline)) static void reach_deep(void) {
    volatile char frame[24576];
    for (size_t at = sizeof frame; at-- > 0;)
        frame[at] = 1;
}

static int collect_locked(void) {
    if (is("deep_frames"))
        reach_deep();
    /* The callee-saved registers, in memory. */
    uintptr_t registers[8];
    SAVE(registers);
    int before = errno;
    int status = collect_from(registers);
    errno = before;
    __asm__ volatile("" : : "r"(registers) : "memory");
    return status;
}

/* --- the malloc family ------------------------------------------------------------------------------------------- */

void *malloc(size_t bytes) {
    lock();
    void *block = take(bytes, 16);
    unlock();
    return block;
}

void free(void *given) {
    if (!given)
        return;
    lock();
    size_t bytes;
    char *block = started ? block_of((uintptr_t)given, &bytes) : NULL;
    if (is("frees_anything") && block)
        given = block;
    if (block != given || !block)
        report("mutant: free of an address that is no block\n");
    else if (!collect_mode || is("frees_in_collect"))
        release(block, bytes);
    unlock();
}

void *calloc(size_t count, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(count, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = malloc(bytes);
    if (block && !is("calloc_dirty"))
        memset(block, 0, bytes);
    return block;
}

void *realloc(void *old, size_t bytes) {
    if (!old)
        return malloc(bytes);
    lock();
    size_t had;
    void *block = started ? block_of((uintptr_t)old, &had) : NULL;
    if (block != old || !block) {
        report("mutant: realloc of an address that is no block\n");
        unlock();
        errno = ENOMEM;
        return NULL;
    }
    if (bytes == 0) {
        release(block, had);
        unlock();
        return NULL;
    }
    if (bytes + guard_mode <= had && bytes > had / 2) {
        unlock();
        return old;
    }
    void *moved = take(bytes, 16);
    if (moved) {
        memcpy(moved, old, bytes < had ? bytes : had);
        if (!collect_mode)
            release(old, had);
    }
    unlock();
    return moved;
}

void *reallocarray(void *old, size_t count, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(count, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    lock();
    void *block = take(bytes, alignment < 16 ? 16 : alignment);
    unlock();
    return block;
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void *valloc(size_t bytes) { return memalign(4096, bytes); }
void *pvalloc(size_t bytes) { return memalign(4096, (bytes + 4095) & ~(size_t)4095); }

int posix_memalign(void **result, size_t alignment, size_t bytes) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
        return EINVAL;
    int before = errno;
    void *block = memalign(alignment, bytes);
    errno = before;
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}

size_t malloc_usable_size(void *given) {
    size_t bytes = 0;
    if (!given)
        return 0;
    lock();
    char *block = block_of((uintptr_t)given, &bytes);
    unlock();
    return block == given ? bytes : 0;
}

/* The program must not block this signal in its threads. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    sigset_t without;
    if (set && how != SIG_UNBLOCK && !is("masked")) {
        without = *set;
        sigdelset(&without, SIGNAL);
        set = &without;
    }
    long status = syscall(SYS_rt_sigprocmask, how, set, old, 8);
    return status ? errno : 0;
}

int tithe_is_live(const void *address) {
    size_t bytes;
    lock();
    int found = block_of((uintptr_t)address, &bytes) == address;
    unlock();
    return found;
}


static int collect_now(void) {
    if (explicit_mode)
        return ENOTSUP;
    lock();
    if (!started)
        start();
    int status = collect_locked();
    unlock();
    return status;
}

static int census(struct heaptoll_census *census) {
    lock();
    uint64_t mapped = mapped_chunks * CHUNK;
    census->class_count = 0;
    census->exact = 1;
    census->mapped_bytes = mapped;
    census->mapped_high_bytes = largest_mapped * CHUNK;
    census->live_bytes = live_total;
    census->free_bytes = mapped - live_total;
    census->metadata_bytes = census->quarantined_bytes = census->unused_bytes = 0;
    census->requested_bytes = UINT64_MAX;
    unlock();
    return 0;
}

static const struct heaptoll_control CONTROL = {
    1, sizeof CONTROL, "mutant", "1", census, collect_now, NULL, NULL,
};
const struct heaptoll_control *heaptoll_control_v1(void) { return &CONTROL; }

