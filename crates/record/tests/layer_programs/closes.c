/* Closes every descriptor but standard output, changes its root and its directory, forgets its environment, and goes on. */
#include "log.h"
#include <pthread.h>

static void *work(void *unused) {
    log_begin();
    for (int i = 0; i < 1000; i++) FREE(MALLOC(i));
    return unused;
}
int main(void) {
    log_begin();
    FREE(MALLOC(10));
    close(0);
    syscall(SYS_close_range, 2, ~0u, 0);
    clearenv();
    if (chdir("/proc")) return 1;
    chroot("/proc");
    pthread_t thread;
    CHECK(!pthread_create(&thread, 0, work, 0));
    pthread_join(thread, 0);
    work(0);
    show();
    return 0;
}
