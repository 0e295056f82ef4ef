/* One block of 64 MiB, of which ten pages are written, one block of 100 bytes, and 8 MiB of the program's own
 * as its neighbour in the address space, all written. */
#include "probe.h"

int main(void) {
    memset(make(100), 1, 100);
    char *large = make(64 << 20);
    for (int page = 0; page < 10; page++) large[(1 << 20) + page * 8192] = 1;
    char *own = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(own, 1, 8 << 20);
    report();
    return 0;
}
