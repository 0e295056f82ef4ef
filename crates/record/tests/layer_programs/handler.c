/* Signal handlers that allocate, at every instruction: over a manager that allows it. */
#include "log.h"
#include <pthread.h>
#include <sys/time.h>

static volatile sig_atomic_t handled;

static void handler(int signal) {
    int kept = errno;
    void *p = malloc(111);
    free(p);
    p = malloc(222);
    p = realloc(p, 333);
    free(p);
    handled++;
    errno = kept;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 50}, {0, 50}};
    log_begin();
    setitimer(ITIMER_REAL, &often, 0);
    int wanted = atoi(argv[1]);
    for (int i = 0; handled < wanted; i++) {
        void *p = malloc(i % 3000);
        p = realloc(p, i % 5000);
        free(p);
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, 0);
    /* What follows must be recorded correctly. */
    mark(MARK_BEGIN);
    for (int i = 1; i < 3000; i++) FREE(MALLOC(i));
    mark(MARK_END);
    show();
    return 0;
}
