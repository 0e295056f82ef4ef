/* A chain of calls in a program whose code does not lie next to its other parts. */
#include <stdlib.h>

__attribute__((noinline)) void *inner(size_t bytes) {
    char *block = malloc(bytes);
    block[0] = 1;
    return block;
}

__attribute__((noinline)) void *outer(size_t bytes) {
    char *block = inner(bytes);
    block[0]++;
    return block;
}

int main(void) {
    for (int i = 0; i < 100; i++) {
        ((char *)outer(1200))[0]++;
    }
    return 0;
}
