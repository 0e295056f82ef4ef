/* Four threads with blocks of their arenas, with 100 KiB of their stacks written, waiting. */
#include <pthread.h>

#include "probe.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t made;

static void *work(void *unused) {
    (void)unused;
    volatile char stack[100 << 10];
    for (size_t at = 0; at < sizeof stack; at++) stack[at] = 1;
    for (int at = 0; at < 3000; at++) {
        pthread_mutex_lock(&lock);
        memset(make(200), 1, 200);
        pthread_mutex_unlock(&lock);
    }
    pthread_barrier_wait(&made);
    pause();
    return NULL;
}

int main(void) {
    /* The main thread makes the first use of the table. */
    make(10);
    pthread_barrier_init(&made, NULL, 5);
    for (int at = 0; at < 4; at++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) return 9;
    }
    pthread_barrier_wait(&made);
    usleep(20000);
    report();
    return 0;
}
