/* A block of 8 MiB, written and then put on a swap device. */
#include "probe.h"

int main(void) {
    size_t bytes = 8 << 20;
    char *block = make(bytes);
    memset(block, 1, bytes);
    char *first = (char *)(((uintptr_t)block + 4095) / 4096 * 4096);
    if (madvise(first, bytes - 4096, MADV_PAGEOUT) != 0) return 9;
    report();
    return 0;
}
