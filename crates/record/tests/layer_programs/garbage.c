/* Makes garbage that nothing in the program refers to any more, and reads from the collector what it found alive. argv:
 * blocks. Prints live bytes before the garbage and after a collection. */
#include "log.h"
#include "../../../../include/heaptoll.h"
#include <dlfcn.h>

static uint64_t live(const struct heaptoll_control *control) {
    struct heaptoll_census census = {.size = sizeof census};
    CHECK(control->collect() == 0 && control->census(&census) == 0);
    return census.live_bytes;
}

__attribute__((noinline)) static void litter(int blocks) {
    for (int i = 0; i < blocks; i++) {
        char *volatile p = malloc(200);
        p[0] = 1;
        p = 0;
        char *volatile q = realloc(malloc(100), 250);
        free(q);
        q = 0;
    }
}

/* Overwrites what calls have left on the stack. */
__attribute__((noinline)) static void wipe(void) {
    volatile char waste[64 << 10];
    for (size_t i = 0; i < sizeof waste; i++) waste[i] = 0;
}

int main(int argc, char **argv) {
    const struct heaptoll_control *(*find)(void) = dlsym(RTLD_DEFAULT, "heaptoll_control_v1");
    CHECK(find);
    const struct heaptoll_control *control = find();
    litter(1000);
    wipe();
    uint64_t before = live(control);
    litter(atoi(argv[1]));
    wipe();
    printf("%llu %llu\n", (unsigned long long)before, (unsigned long long)live(control));
    return 0;
}
