/* The tables of messages that glibc no longer has under these names. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>

#define ERRORS 134
#define SIGNALS 65

int sys_nerr = ERRORS;
const char *sys_errlist[ERRORS];
const char *sys_siglist[SIGNALS];

__attribute__((constructor)) static void fill(void) {
    for (int error = 0; error < ERRORS; error++) sys_errlist[error] = strerrordesc_np(error);
    for (int signal = 0; signal < SIGNALS; signal++) sys_siglist[signal] = sigdescr_np(signal);
}
