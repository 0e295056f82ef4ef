/* Allocates near a limit: `stack BYTES` on a stack of that size above a page without access, `space MIB` that much. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static ucontext_t outside, inside;

static void allocate(void) {
    for (int i = 1; i < 100; i++) free(realloc(malloc(i), 2 * i));
}

int main(int argc, char **argv) {
    size_t amount = atol(argv[2]);
    if (!strcmp(argv[1], "stack")) {
        char *place = mmap(0, 4096 + amount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(place, 4096, PROT_NONE);
        getcontext(&inside);
        inside.uc_stack.ss_sp = place + 4096;
        inside.uc_stack.ss_size = amount;
        inside.uc_link = &outside;
        makecontext(&inside, allocate, 0);
        return swapcontext(&outside, &inside);
    }
    for (size_t n = 0; n < amount; n++)
        if (!malloc(1 << 20)) return 1;
    return 0;
}
