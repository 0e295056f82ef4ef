/* early.c: a library of the suite. Its constructor runs before that of a preloaded manager (the loader initialises
 * preloaded objects after the libraries of the program), so its fork handlers are the first to be registered, and
 * its blocks are among the first to be allocated. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void (*prepare_now)(void), (*after_now)(void);
char *early_block;

static void prepare(void) {
    if (prepare_now)
        prepare_now();
}

static void after(void) {
    if (after_now)
        after_now();
}

void early_handlers(void (*prepare_then)(void), void (*after_then)(void)) {
    prepare_now = prepare_then;
    after_now = after_then;
}

__attribute__((constructor)) static void first(void) {
    early_block = malloc(100);
    if (early_block)
        strcpy(early_block, "allocated before any other constructor");
    pthread_atfork(prepare, after, after);
}
