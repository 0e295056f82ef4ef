/* 10 000 blocks of 1 KiB, half of them written; every second one freed; all but one freed; the heap trimmed. */
#include "probe.h"

int main(void) {
    for (int at = 0; at < 10000; at++) make(1000 + 24);
    for (int at = 0; at < 5000; at++) memset(blocks[at].address, 1, 1024);
    report();
    for (size_t at = 10000; at-- > 0;)
        if (at % 2) drop(at);
    report();
    /* What was made first, of the lowest addresses, stays. */
    for (size_t at = count; at-- > 0;)
        if (at > 0) drop(at);
    report();
    malloc_trim(0);
    report();
    return 0;
}
