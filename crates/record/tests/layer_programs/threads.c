/* Threads that allocate, and give back what others have allocated. argv: threads, rounds. */
#include "log.h"
#include <pthread.h>

enum { SLOTS = 64 };
static void *slots[SLOTS];
static int rounds;

static void *work(void *argument) {
    log_begin();
    unsigned seed = 1 + (uintptr_t)argument;
    for (int i = 0; i < rounds; i++) {
        seed = seed * 1103515245 + 12345;
        size_t size = (seed >> 8) % ((seed >> 4) % 50 ? 300 : 90000);
        void *p = seed >> 20 & 7 ? MALLOC(size) : NEW(1, 0, size, calloc(1, size));
        if ((seed >> 12) % 5 == 0) p = REALLOC(p, size + 1 + (seed >> 16) % 3000);
        void **place = &slots[(seed >> 24) % SLOTS];
        void *other = __atomic_exchange_n(place, p, __ATOMIC_ACQ_REL);
        if (other) FREE(other);
    }
    return 0;
}

int main(int argc, char **argv) {
    int count = atoi(argv[1]);
    rounds = atoi(argv[2]);
    log_begin();
    pthread_t thread[count];
    for (int i = 0; i < count; i++) CHECK(!pthread_create(&thread[i], 0, work, (void *)(uintptr_t)i));
    work((void *)9999);
    for (int i = 0; i < count; i++) pthread_join(thread[i], 0);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i]) FREE(slots[i]);
    show();
    return 0;
}
