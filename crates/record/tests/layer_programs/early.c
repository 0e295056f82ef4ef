/* Allocates before the C library is initialised: in the loader's call of a resolver, or before all constructors. */
#define _GNU_SOURCE
#include <stdlib.h>

static void *early, *resized;

static void allocate(void) {
    early = malloc(2221);
    free(malloc(2222));
    resized = realloc(malloc(2223), 2224);
}
static int one_more(int number) { return number + 1; }
#ifdef PREINIT
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = allocate;
#elif defined CONSTRUCTOR
__attribute__((constructor)) static void constructor(void) { allocate(); }
#else
static int (*resolve(void))(int) { allocate(); return one_more; }
static int chosen(int) __attribute__((ifunc("resolve")));
#define one_more chosen
#endif
int give_back(int number) {
    free(early);
    free(realloc(resized, 2225));
    return one_more(number) - 1;
}
#ifndef LIBRARY
int main(void) { free(malloc(2226)); return give_back(0); }
#endif
