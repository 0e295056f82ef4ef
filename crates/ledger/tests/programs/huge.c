/* Four huge pages in one block, a byte written on each. */
#include "probe.h"

int main(void) {
    size_t huge = 2 << 20;
    char *block = make(6 * huge);
    char *first = (char *)(((uintptr_t)block + huge - 1) / huge * huge);
    if (madvise(first, 4 * huge, MADV_HUGEPAGE) != 0) return 9;
    for (int at = 0; at < 4; at++) first[at * huge] = 1;
    report();
    return 0;
}
