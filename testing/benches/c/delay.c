/* A manager slowed by a known amount: glibc's malloc with DELAY_TURNS turns of an empty loop (a cycle each, or so)
   before each sixteenth call: less than a turn a call can be set. Used to test whether heaptoll finds a difference of a given size; built and loaded by
   heaptoll-bench. */
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);

static unsigned long delay;

__attribute__((constructor)) static void read_delay(void) {
    const char *text = getenv("DELAY_TURNS");
    delay = text ? strtoul(text, NULL, 10) : 0;
}

void *malloc(size_t size) {
    static unsigned long calls;
    if (++calls % 16 == 0)
        for (unsigned long turns = delay; turns; turns--)
            __asm__ volatile("" ::: "memory");
    return __libc_malloc(size);
}
