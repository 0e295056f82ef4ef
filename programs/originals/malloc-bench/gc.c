/* The collector's calls of 1992, for programs whose frees are compiled out: they reach whatever manager is preloaded.
 *
 * The programs call these without a prototype, so sizes arrive as int: the functions take 32 bits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *allocate(size_t bytes);

/* Pointer-free memory, where the manager has it (include/heaptoll.h), unless POINTER_FREE is "off": the difference is
 * what it saves the collector. */
static allocate *pointer_free;

__attribute__((constructor)) static void find_pointer_free(void) {
    const char *setting = getenv("POINTER_FREE");
    if (!setting || strcmp(setting, "off") != 0)
        pointer_free = (allocate *)dlsym(RTLD_DEFAULT, "heaptoll_malloc_pointer_free");
    if (!pointer_free) pointer_free = malloc;
}

char *gc_malloc(unsigned bytes) { return malloc(bytes); }
char *gc_malloc_atomic(unsigned bytes) { return pointer_free(bytes); }
char *gc_realloc(char *block, unsigned bytes) { return realloc(block, bytes); }
int gc_init(void) { return 0; }

char *GC_malloc(unsigned bytes) { return malloc(bytes); }
char *GC_realloc(char *block, unsigned bytes) { return realloc(block, bytes); }
