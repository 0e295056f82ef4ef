/* life.c: allocation before main, after it, at the end of threads, and in libraries that are loaded and unloaded. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char *early_block;
static void *from_constructor;

__attribute__((constructor(101))) static void constructor(void) {
    from_constructor = malloc(777);
    if (from_constructor)
        fill(from_constructor, 777, 1);
}

CASE(PLAIN, constructors, "blocks allocated by constructors are valid in main") {
    CHECK(early_block && strcmp(early_block, "allocated before any other constructor") == 0,
          "a block allocated by a library's constructor was lost");
    CHECK(from_constructor, "malloc gave null in a constructor");
    check_filled(from_constructor, 777, 1, "a block allocated by a constructor");
    early_block = realloc(early_block, 5000);
    CHECK(early_block && strcmp(early_block, "allocated before any other constructor") == 0,
          "realloc lost a block allocated by a constructor");
    free(early_block);
    free(from_constructor);
}

static void *from_main;
static int at_end;

static void use_at_end(const char *where) {
    void *blocks[100];
    check_filled(from_main, 3000, 2, where);
    for (size_t i = 0; i < 100; i++) {
        blocks[i] = malloc(i * 20 + 1);
        CHECK(blocks[i], "malloc gave null: %s", where);
        fill(blocks[i], i * 20 + 1, i);
    }
    for (size_t i = 0; i < 100; i++) {
        check_filled(blocks[i], i * 20 + 1, i, where);
        free(blocks[i]);
    }
}

static void exit_handler(void) {
    use_at_end("in a handler of atexit");
    void *more = realloc(from_main, 9000);
    CHECK(more, "realloc gave null in a handler of atexit");
    from_main = more;
}

__attribute__((destructor)) static void destructor(void) {
    if (!at_end)
        return;
    use_at_end("in a destructor");
    free(from_main);
    /* Without this check a destructor that never ran would pass. */
    note("the destructor ran");
}

CASE(PLAIN, exit_handlers, "handlers of atexit and destructors allocate and free") {
    from_main = malloc(3000);
    CHECK(from_main, "malloc gave null");
    fill(from_main, 3000, 2);
    CHECK(atexit(exit_handler) == 0, "atexit failed");
    at_end = 1;
}

static pthread_key_t key;
static int destroyed;

/* Allocates, and leaves a block to be destroyed in the next round, as pthread allows four times. */
static void destroy(void *value) {
    check_filled(value, 200, 6, "a block in a thread's key");
    free(value);
    void *blocks[20];
    for (size_t i = 0; i < 20; i++) {
        blocks[i] = malloc(10 + i * 70);
        CHECK(blocks[i], "malloc gave null in a key's destructor");
        fill(blocks[i], 10 + i * 70, i);
    }
    for (size_t i = 0; i < 20; i++) {
        check_filled(blocks[i], 10 + i * 70, i, "a block of a key's destructor");
        free(blocks[i]);
    }
    if (__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED) % 4) {
        void *next = malloc(200);
        CHECK(next, "malloc gave null in a key's destructor");
        fill(next, 200, 6);
        pthread_setspecific(key, next);
    }
}

static void *has_key(void *argument) {
    void *value = malloc(200);
    CHECK(value, "malloc gave null");
    fill(value, 200, 6);
    pthread_setspecific(key, value);
    return argument;
}

CASE(PLAIN, key_destructors, "destructors of pthread keys allocate and free, up to the last round") {
    CHECK(pthread_key_create(&key, destroy) == 0, "pthread_key_create failed");
    size_t threads = effort(300, 60);
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, has_key, NULL) == 0, "pthread_create failed");
        pthread_join(thread, NULL);
    }
    CHECK((size_t)destroyed == threads * 4, "%d destructors ran for %zu threads of four rounds each", destroyed,
          threads);
}

CASE(PLAIN, dlopen_close, "libraries that allocate when loaded and unloaded; blocks outlive them") {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    CHECK(length > 0, "cannot read /proc/self/exe");
    path[length] = 0;
    strcpy(strrchr(path, '/') + 1, "libplugin.so");
    size_t rounds = effort(200, 50);
    for (size_t i = 0; i < rounds; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        CHECK(library, "dlopen: %s", dlerror());
        void *symbol = dlsym(library, "plugin_make");
        CHECK(symbol, "dlsym: %s", dlerror());
        char *(*make)(size_t);
        memcpy(&make, &symbol, sizeof make);
        char *block = make(1000);
        CHECK(block, "malloc gave null in a library");
        CHECK(dlclose(library) == 0, "dlclose: %s", dlerror());
        check_filled(block, 1000, 8, "a block of a library that was unloaded");
        free(block);
        CHECK(!dlopen("/no/such/library.so", RTLD_NOW) && dlerror(), "dlopen of nothing succeeded");
    }
}
