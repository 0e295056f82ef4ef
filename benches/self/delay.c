/* A manager slowed by a known amount: glibc's malloc with a spin of DELAY_MILLITURNS thousandths of a turn before
   each call. Used to ask whether heaptoll sees a difference of a given size; built and loaded by heaptoll-bench. */
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);

static unsigned long whole, part, sum;

__attribute__((constructor)) static void read_delay(void) {
    const char *text = getenv("DELAY_MILLITURNS");
    unsigned long milliturns = text ? strtoul(text, NULL, 10) : 0;
    whole = milliturns / 1000;
    part = milliturns % 1000;
}

void *malloc(size_t size) {
    unsigned long turns = whole;
    sum += part;
    if (sum >= 1000) {
        sum -= 1000;
        turns++;
    }
    for (; turns; turns--)
        __asm__ volatile("pause" ::: "memory");
    return __libc_malloc(size);
}
