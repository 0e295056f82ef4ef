/* Linked to a program: one more thread, which sleeps for ever. The program does the same work with it, but is no longer
 * single-threaded: glibc clears __libc_single_threaded, and from then on its malloc and ours take their locks. The
 * difference is what an uncontended lock costs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void *sleep_for_ever(void *nothing)
{
    /* pause always fails, after a signal handler: and this thread takes no signals. */
    while (pause() != 0)
        continue;
    return nothing;
}

__attribute__((constructor)) static void start(void)
{
    static const char complaint[] = "sleeper: the sleeping thread could not be started\n";
    pthread_t thread;
    sigset_t all, before;
    /* The program's signals are its own threads'. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0) {
        if (write(2, complaint, sizeof complaint - 1) < 0)
            _exit(126);
        _exit(125);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
