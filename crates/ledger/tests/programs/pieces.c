/* 500 blocks of a page, written, each in a mapping of its own. */
#include "probe.h"

int main(void) {
    make(10);
    char *all = mmap(NULL, 1000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 9;
    for (int page = 0; page < 1000; page += 2) {
        char *block = all + (size_t)page * 4096;
        memset(block, 1, 4096);
        if (mprotect(block + 4096, 4096, PROT_NONE) != 0) return 9;
        blocks[count++] = (struct block){block, 4096, 4096};
    }
    report();
    return 0;
}
