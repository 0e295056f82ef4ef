/* plugin.c: a library that the suite loads and unloads. */
#include "check.h"

#include <stdlib.h>

static void *own;
/* Thread-local memory of a library loaded later is allocated by the loader, with malloc. */
static __thread char local[3000];

__attribute__((constructor)) static void loaded(void) {
    own = malloc(12345);
    if (own)
        fill(own, 12345, 9);
}

__attribute__((destructor)) static void unloaded(void) {
    if (!own || damage(own, 12345, 9) >= 0)
        abort();
    free(own);
}

__attribute__((visibility("default"))) char *plugin_make(size_t size) {
    local[size % sizeof local] = 1;
    char *made = malloc(size);
    if (made)
        fill(made, size, 8);
    return made;
}
