/* binding.c: which object provides the malloc family. If a manager leaves out a function, glibc's version is called,
 * with blocks that are not glibc's. */
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

CASE(PLAIN, binding, "all eleven functions come from the object that provides malloc") {
    static const char *const family[] = {"malloc",        "free",         "calloc",  "realloc",
                                         "reallocarray",  "memalign",     "posix_memalign",
                                         "aligned_alloc", "valloc",       "pvalloc", "malloc_usable_size"};
    const char *preloaded = getenv("LD_PRELOAD");
    Dl_info of_malloc;
    CHECK(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc), "malloc is in no object");
    if (preloaded && *preloaded)
        /* The first object, where layers are in front of a manager. */
        CHECK(strlen(of_malloc.dli_fname) == strcspn(preloaded, ":") &&
                  strncmp(of_malloc.dli_fname, preloaded, strcspn(preloaded, ":")) == 0,
              "malloc comes from %s", of_malloc.dli_fname);
    for (size_t i = 0; i < sizeof family / sizeof *family; i++) {
        Dl_info found;
        void *symbol = dlsym(RTLD_DEFAULT, family[i]);
        CHECK(symbol && dladdr(symbol, &found), "%s is in no object", family[i]);
        CHECK(found.dli_fbase == of_malloc.dli_fbase, "%s comes from %s", family[i], found.dli_fname);
    }
}
