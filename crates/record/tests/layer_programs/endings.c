/* Blocks freed late: by destructors of thread-local storage, by atexit handlers, by library destructors; and ways
 * to end. argv: exit | _exit | abort | kill | return | thread. */
#include "log.h"
#include <pthread.h>

static pthread_key_t key;
static void *kept;

static void of_thread(void *block) {
    /* Makes another one, three rounds long. */
    static __thread int round;
    FREE(block);
    if (++round < 4) pthread_setspecific(key, MALLOC(600 + round));
    else FREE(MALLOC(700));
}
static void *thread(void *unused) {
    log_begin();
    pthread_setspecific(key, MALLOC(500));
    return unused;
}
static void at_exit(void) {
    FREE(kept);
    FREE(MALLOC(900));
}
__attribute__((destructor)) static void destructor(void) {
    FREE(MALLOC(1000));
    show();
}

int main(int argc, char **argv) {
    log_begin();
    pthread_key_create(&key, of_thread);
    atexit(at_exit);
    kept = MALLOC(800);
    pthread_t other;
    CHECK(!pthread_create(&other, 0, thread, 0));
    pthread_join(other, 0);
    if (!strcmp(argv[1], "exit")) exit(0);
    if (!strcmp(argv[1], "return")) return 0;
    if (!strcmp(argv[1], "thread")) pthread_exit(0);
    show();
    if (!strcmp(argv[1], "_exit")) _exit(0);
    if (!strcmp(argv[1], "abort")) abort();
    if (!strcmp(argv[1], "kill")) kill(getpid(), SIGKILL);
    return 97;
}
