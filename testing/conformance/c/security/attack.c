/* attack.c: see attack.h. */
#include "attack.h"

#include <stdlib.h>
#include <unistd.h>

enum { LATER = 200 };

void *taken(size_t size) {
    unsigned char *block = malloc(hidden(size));
    CHECK(block, "malloc(%zu) gave null", size);
    for (size_t i = 0; i < size; i++)
        ((volatile unsigned char *)block)[i] = MARK;
    return block;
}

void given(void *block) { free(hidden_pointer(block)); }

void state(int happened, size_t size) {
    static const char yes[] = "happened\n", no[] = "prevented\n";
    static void *blocks[LATER];
    if (happened ? write(STDOUT_FILENO, yes, sizeof yes - 1) < 0 : write(STDOUT_FILENO, no, sizeof no - 1) < 0)
        _exit(4);
    for (int i = 0; i < LATER; i++)
        blocks[i] = malloc(i % 2 ? size : 24 + (size_t)i * 5);
    for (int i = 0; i < LATER; i++)
        free(blocks[i]);
}

size_t marked(const void *block, size_t from, size_t size) {
    size_t found = 0;
    for (size_t i = from; i < size; i++)
        found += ((const volatile unsigned char *)block)[i] == MARK;
    return found;
}
