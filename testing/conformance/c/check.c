/* check.c: the helpers of check.h. */
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heaptoll.h"

int quick_effort;

/* vsnprintf of numbers, strings and pointers into a given buffer does not allocate. */
static void write_line(int fd, const char *prefix, const char *format, va_list arguments) {
    char line[1024];
    int length = snprintf(line, sizeof line, "%s", prefix);
    int more = vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    if (more > 0)
        length += more;
    if ((size_t)length > sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    if (write(fd, line, (size_t)length) < 0)
        _exit(3);
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line(STDERR_FILENO, "", format, arguments);
    va_end(arguments);
    _exit(1);
}

void note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line(STDOUT_FILENO, "note: ", format, arguments);
    va_end(arguments);
}

void not_applicable(const char *reason) {
    note("not applicable: %s", reason);
    _exit(77);
}

size_t effort(size_t full, size_t quick) { return quick_effort ? quick : full; }

size_t hidden(size_t number) {
    volatile size_t copy = number;
    return copy;
}

void *hidden_pointer(void *pointer) {
    void *volatile copy = pointer;
    return copy;
}

uint64_t rng_next(struct rng *rng) {
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * UINT64_C(0x2545F4914F6CDD1D);
}

size_t rng_below(struct rng *rng, size_t limit) { return (size_t)(rng_next(rng) >> 16) % limit; }

static unsigned char pattern(size_t at, uint64_t seed) {
    uint64_t mixed = (at + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ seed * UINT64_C(0xD6E8FEB86659FD93);
    return (unsigned char)(mixed >> 40);
}

/* The next offset to check: all near both ends, one in 509 between. */
static size_t step(size_t at, size_t size) {
    if (size <= 4096 || at < 64 || at + 64 >= size)
        return at + 1;
    return at + 509 + 64 < size ? at + 509 : size - 64;
}

void fill(void *block, size_t size, uint64_t seed) {
    for (size_t at = 0; at < size; at = step(at, size))
        ((volatile unsigned char *)block)[at] = pattern(at, seed);
}

ptrdiff_t damage(const void *block, size_t size, uint64_t seed) {
    for (size_t at = 0; at < size; at = step(at, size))
        if (((const volatile unsigned char *)block)[at] != pattern(at, seed))
            return (ptrdiff_t)at;
    return -1;
}

void check_filled(const void *block, size_t size, uint64_t seed, const char *what) {
    ptrdiff_t at = damage(block, size, seed);
    CHECK(at < 0, "%s: byte %td of the %zu at %p changed", what, at, size, block);
}

size_t border_sizes(size_t sizes[BORDERS], size_t largest) {
    size_t count = 0;
    for (size_t power = 8; power <= largest; power *= 2)
        for (int half = 0; half < 2; half++)
            for (int side = -1; side <= 1; side++) {
                size_t size = (half ? power + power / 2 : power) + (size_t)side;
                if (size <= largest && count < BORDERS)
                    sizes[count++] = size;
            }
    return count;
}

size_t resident_bytes(void) {
    char text[128] = {0};
    unsigned long whole, resident;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%lu %lu", &whole, &resident) != 2)
        fail("cannot read /proc/self/statm");
    close(fd);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

void again_with(const char *name, const char *value) {
    extern char **environ;
    /* Not setenv, which allocates. */
    static char *given[256];
    static char entry[256];
    const char *now = getenv(name);
    if (now && strcmp(now, value) == 0)
        return;
    size_t count = 0;
    for (; environ[count] && count < 250; count++)
        given[count] = environ[count];
    snprintf(entry, sizeof entry, "%s=%s", name, value);
    given[count] = entry;
    char *arguments[] = {"suite", (char *)case_name, quick_effort ? "--quick" : NULL, NULL};
    execve("/proc/self/exe", arguments, given);
    fail("cannot start this program again with %s", entry);
}

const struct heaptoll_control *control(void) {
    /* Looked up in the object that provides malloc, since a layer may export the symbol too. Not by dlopen: it
     * allocates, and a manager under test may have no memory. */
    void *symbol = dlsym(RTLD_DEFAULT, "heaptoll_control_v1");
    void *allocate = dlsym(RTLD_DEFAULT, "malloc");
    Dl_info of_symbol, of_malloc;
    if (!symbol || !dladdr(symbol, &of_symbol) || !dladdr(allocate, &of_malloc) ||
        of_symbol.dli_fbase != of_malloc.dli_fbase)
        return NULL;
    const struct heaptoll_control *(*function)(void);
    memcpy(&function, &symbol, sizeof function);
    const struct heaptoll_control *found = function();
    CHECK(found, "heaptoll_control_v1 gave a null pointer");
    return found;
}

void check_heap(const char *when) {
    const struct heaptoll_control *found = control();
    if (!found)
        return;
    if (found->census) {
        struct heaptoll_census census = {.size = sizeof census};
        int status = found->census(&census);
        CHECK(status == 0, "%s: the census answered %d", when, status);
        uint64_t sum = census.live_bytes + census.free_bytes + census.metadata_bytes + census.quarantined_bytes +
                       census.unused_bytes;
        CHECK(sum == census.mapped_bytes,
              "%s: live %llu + free %llu + metadata %llu + quarantined %llu + unused %llu is not mapped %llu", when,
              (unsigned long long)census.live_bytes, (unsigned long long)census.free_bytes,
              (unsigned long long)census.metadata_bytes, (unsigned long long)census.quarantined_bytes,
              (unsigned long long)census.unused_bytes, (unsigned long long)census.mapped_bytes);
    }
    if (found->check) {
        int status = found->check();
        CHECK(status == 0, "%s: the manager's own check of its heap answered %d", when, status);
    }
}
