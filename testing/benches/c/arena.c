/* A manager with a known footprint in the caches: glibc's malloc, which before each call reads the next lines of an arena
   of ARENA_KIB. Used to measure what company on one processor does to a program's ratios; built and loaded by
   heaptoll-bench. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

void *__libc_malloc(size_t size);

enum { LINE = 64, LINES_A_CALL = 2 };

static volatile char *arena;
static size_t bytes, at;

__attribute__((constructor)) static void map_arena(void) {
    const char *text = getenv("ARENA_KIB");
    bytes = text ? strtoul(text, NULL, 10) << 10 : 0;
    if (bytes == 0)
        return;
    char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        bytes = 0;
        return;
    }
    for (size_t page = 0; page < bytes; page += 4096)
        mapped[page] = 1;
    arena = mapped;
}

void *malloc(size_t size) {
    if (bytes != 0)
        for (int line = 0; line < LINES_A_CALL; line++) {
            (void)arena[at];
            /* An odd number of lines apart, so that the next ones are not fetched ahead. */
            at = (at + 4097 * LINE) % bytes;
        }
    return __libc_malloc(size);
}
