/* Goes on after the tool has died. argv: a file to create once it allocates, threads. */
#include "log.h"
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

static volatile int over;
static void *work(void *unused) {
    unsigned long rounds = 0;
    while (!over) {
        void *p = malloc(100);
        p = realloc(p, 5000);
        free(p);
        rounds++;
    }
    return (void *)rounds;
}

int main(int argc, char **argv) {
    int count = atoi(argv[2]);
    pthread_t thread[count + 1];
    for (int i = 0; i < count; i++) CHECK(!pthread_create(&thread[i], 0, work, 0));
    int ready = open(argv[1], O_WRONLY | O_CREAT, 0600);
    CHECK(write(ready, "x", 1) == 1);
    /* As long as the tool lives and three seconds more; the test removes the file when it has killed it. */
    while (!access(argv[1], F_OK)) {
        free(malloc(77));
        usleep(1000);
    }
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    unsigned long rounds = 0;
    do {
        for (int i = 0; i < 1000; i++) free(malloc(i));
        rounds += 1000;
        clock_gettime(CLOCK_MONOTONIC, &now);
        /* So many also where other programs take the processors. */
    } while (now.tv_sec - begun.tv_sec < 2 || rounds <= 100000);
    int pid = fork();
    if (!pid) {
        for (int i = 0; i < 1000; i++) free(malloc(i));
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    over = 1;
    for (int i = 0; i < count; i++) {
        void *done;
        pthread_join(thread[i], &done);
        CHECK((unsigned long)done > 1000);
    }
    printf("%lu\n", rounds);
    return 0;
}
