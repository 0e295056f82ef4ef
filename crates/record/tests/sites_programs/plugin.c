/* Compiled several times, with another size and name each. */
#include <stddef.h>

static volatile int sink;

__attribute__((noinline, noclone)) static void NAME(void (*take)(size_t)) {
    take(SIZE);
    sink++;
}

void enter(void (*take)(size_t)) {
    sink++;
    NAME(take);
    sink++;
}
