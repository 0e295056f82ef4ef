/* What a test program did, in the order in which each of its threads did it, in memory of its own: nothing here
 * allocates. The first letter of a line is its kind:
 *   A tid kind align size block usable     a new block
 *   F tid delete block                     a block given back
 *   R tid old new size usable              a resize
 *   X tid kind size                        a call that gave nothing
 * Kinds are those of a trace: 0 malloc, 1 calloc, 2 aligned, 3 operator new, 4 realloc. */
#ifndef LOG_H
#define LOG_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_BYTES = 4 << 20, LOGS = 1024 };
static struct { char *text; size_t used; } logs[LOGS];
static int log_count;
static __thread int log_own;
static __thread int log_tid;

__attribute__((unused)) static void log_line(const char *format, ...) {
    if (!log_own) {
        log_own = __atomic_add_fetch(&log_count, 1, __ATOMIC_SEQ_CST);
        log_tid = syscall(SYS_gettid);
        logs[log_own - 1].used = 0;
        logs[log_own - 1].text = (char *)mmap(0, LOG_BYTES, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    va_list arguments;
    va_start(arguments, format);
    size_t *used = &logs[log_own - 1].used;
    *used += vsnprintf(logs[log_own - 1].text + *used, LOG_BYTES - *used, format, arguments);
    va_end(arguments);
}

/* All logs to standard output, one thread after another. */
__attribute__((unused)) static void show(void) {
    for (int i = 0; i < log_count; i++)
        for (size_t at = 0; at < logs[i].used;) {
            ssize_t wrote = write(1, logs[i].text + at, logs[i].used - at);
            if (wrote <= 0) _exit(99);
            at += wrote;
        }
    log_count = 0;
}

__attribute__((unused)) static void *made(int kind, size_t align, size_t size, void *block) {
    if (block) log_line("A %d %d %zu %zu %p %zu\n", log_tid, kind, align, size, block, malloc_usable_size(block));
    else log_line("X %d %d %zu\n", log_tid, kind, size);
    return block;
}

__attribute__((unused)) static void given_back(int operator_delete, void *block) {
    log_line("F %d %d %p\n", log_tid, operator_delete, block);
}

__attribute__((unused)) static void *resized(void *old, size_t size, void *block) {
    log_line("R %d %p %p %zu %zu\n", log_tid, old, block, size, block ? malloc_usable_size(block) : 0);
    return block;
}

/* The thread's number is known from its first line on. */
__attribute__((unused)) static void log_begin(void) { log_line("B %d\n", (int)syscall(SYS_gettid)); }

#define NEW(kind, align, size, call) made(kind, align, size, (call))
#define MALLOC(size) NEW(0, 0, size, malloc(size))
#define FREE(block) ({ void *block_ = (block); given_back(0, block_); free(block_); })
#define REALLOC(block, size) ({ void *old_ = (block); resized(old_, size, realloc(old_, size)); })

/* Sizes that nothing else requests: what is between them is the test's. */
enum { MARK_BEGIN = 1234567, MARK_END = 1234577 };
__attribute__((unused)) static void mark(size_t size) { free(malloc(size)); }

#define CHECK(condition) do { if (!(condition)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); _exit(98); } } while (0)
#endif
