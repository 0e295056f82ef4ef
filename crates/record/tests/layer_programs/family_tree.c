/* Processes: fork, fork of a fork, vfork and exec, a bare clone, exec of itself. argv: which. */
#include "log.h"
#include <sched.h>

static void busy(int from) {
    for (int i = 0; i < 100; i++) FREE(MALLOC(from + i));
}
static void await(int pid) {
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
}

int main(int argc, char **argv) {
    log_begin();
    if (argc > 2) { /* the image that exec began */
        busy(atoi(argv[2]));
        show();
        return 0;
    }
    void *inherited = MALLOC(4321);
    busy(1000);
    if (!strcmp(argv[1], "fork")) {
        fflush(0);
        int pid = fork();
        if (!pid) {
            log_count = 0, log_own = 0;
            log_begin();
            /* Known to the parent only. */
            FREE(inherited);
            busy(2000);
            int grandchild = fork();
            if (!grandchild) {
                log_count = 0, log_own = 0;
                log_begin();
                busy(3000);
                show();
                _exit(0);
            }
            await(grandchild);
            busy(2200);
            show();
            _exit(0);
        }
        await(pid);
    } else if (!strcmp(argv[1], "clone")) {
        int pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (!pid) {
            log_count = 0, log_own = 0;
            log_begin();
            busy(2000);
            show();
            _exit(0);
        }
        await(pid);
    } else if (!strcmp(argv[1], "vfork")) {
        int pid = vfork();
        if (!pid) {
            /* In its parent's memory: counts as its parent's. */
            FREE(MALLOC(5555));
            execl("/proc/self/exe", "family_tree", "vfork", "2000", (char *)0);
            _exit(96);
        }
        await(pid);
    } else if (!strcmp(argv[1], "exec")) {
        FREE(inherited);
        show();
        execl("/proc/self/exe", "family_tree", "exec", "2000", (char *)0);
        _exit(95);
    }
    busy(1200);
    FREE(inherited);
    show();
    return 0;
}
