/* The null manager as a manager: blocks are distinct, aligned, zero, as large as requested, and keep what is in them. argv:
 * which of its sides. */
#include "log.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

static void *thread(void *argument) {
    /* Each block is this thread's alone: it holds its own mark to the end. */
    enum { BLOCKS = 20000 };
    uintptr_t **block = calloc(BLOCKS, sizeof *block);
    for (uintptr_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(8 + i % 300);
        CHECK(block[i] && (uintptr_t)block[i] % 16 == 0 && malloc_usable_size(block[i]) >= 8 + i % 300);
        *block[i] = (uintptr_t)argument << 32 | i;
    }
    for (uintptr_t i = 0; i < BLOCKS; i++) CHECK(*block[i] == ((uintptr_t)argument << 32 | i));
    return 0;
}

static void family(void) {
    size_t sizes[] = {0, 1, 16, 17, 100, 4095, 4096, 1 << 19, (1 << 19) + 1, 1 << 20, 5 << 20, (size_t)3 << 30};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int again = 0; again < 3; again++) {
            unsigned char *p = again == 1 ? calloc(1, sizes[i]) : malloc(sizes[i]);
            size_t usable = malloc_usable_size(p);
            CHECK(p && (uintptr_t)p % 16 == 0 && usable >= sizes[i] && (usable & (usable - 1)) == 0);
            CHECK(p[0] == 0 && p[usable - 1] == 0);
            p[0] = p[usable - 1] = 7;
        }
    for (size_t align = 8; align <= 1 << 22; align *= 2) {
        void *p = 0;
        CHECK((uintptr_t)memalign(align, 10) % align == 0);
        CHECK((uintptr_t)aligned_alloc(align, 100) % align == 0);
        CHECK(!posix_memalign(&p, align, 1000) && p && (uintptr_t)p % align == 0);
    }
    void *kept = (void *)5;
    CHECK(posix_memalign(&kept, 24, 1) == EINVAL && posix_memalign(&kept, 4, 1) == EINVAL && kept == (void *)5);
    CHECK((uintptr_t)memalign(48, 1) % 64 == 0);
    CHECK(!aligned_alloc(48, 1) && errno == EINVAL);
    CHECK((uintptr_t)valloc(1) % 4096 == 0 && malloc_usable_size(pvalloc(5000)) >= 8192);
    char *p = realloc(0, 5);
    strcpy(p, "abcd");
    for (size_t size = 6; size < 100 << 20; size = size * 3 / 2) {
        p = realloc(p, size);
        CHECK(p && !strcmp(p, "abcd") && malloc_usable_size(p) >= size);
    }
    p = realloc(p, 10);
    CHECK(!strcmp(p, "abcd"));
    p = reallocarray(p, 1000, 1 << 20);
    CHECK(!strcmp(p, "abcd"));
    CHECK(!realloc(p, 0));
    errno = 0;
    CHECK(!malloc(SIZE_MAX) && errno == ENOMEM && !malloc(PTRDIFF_MAX) && !calloc(SIZE_MAX, 2));
    CHECK(!reallocarray(p, SIZE_MAX, 2) && !realloc(p, (size_t)1 << 60) && !strcmp(p, "abcd"));
    CHECK(posix_memalign(&kept, 64, SIZE_MAX) == ENOMEM && kept == (void *)5);
    CHECK(malloc_usable_size(0) == 0);
    free(0);
}

int main(int argc, char **argv) {
    if (!strcmp(argv[1], "family")) family();
    if (!strcmp(argv[1], "threads")) {
        enum { THREADS = 200 };
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], 0, thread, (void *)i));
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    }
    /* The largest blocks are 32 GiB: there are sixteen. */
    if (!strcmp(argv[1], "used-up")) {
        int count = 0;
        while (malloc((size_t)32 << 30)) count++;
        CHECK(count == 16 && errno == ENOMEM && !malloc((size_t)32 << 30));
        CHECK(malloc(100));
    }
    if (!strcmp(argv[1], "forget")) {
        void (*forget)(int) = dlsym(RTLD_DEFAULT, "heaptoll_null_forget");
        CHECK(forget);
        char *p = malloc(100);
        strcpy(p, "abcd");
        forget(1);
        for (int i = 0; i < 1000; i++) CHECK(malloc((size_t)32 << 30));
        CHECK(*(char *)realloc(p, 1000) == 0);
        forget(0);
        CHECK(!strcmp(realloc(p, 1000), "abcd"));
    }
    if (!strcmp(argv[1], "limit")) {
        /* Taken already: reserved at the first call. A second image finds the limit. */
        if (argc == 2) {
            struct rlimit limit = {1 << 28, 1 << 28};
            setrlimit(RLIMIT_AS, &limit);
            execl("/proc/self/exe", "null", "limit", "again", (char *)0);
            return 1;
        }
        for (int i = 0; i < 1000; i++) CHECK(malloc(1000));
        CHECK(!malloc(1 << 30) && errno == ENOMEM);
    }
    return 0;
}
