/* main.c: lists the cases, or runs one of them.
 *
 *   suite --list            one line a case: name, kind, what it is about, separated by tabs
 *   suite --malloc          the file that malloc comes from
 *   suite CASE [--quick]    status 0: holds; 1: does not, with the reason on standard error; 77: does not apply to this
 *                           manager. Anything else is a crash.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

extern int quick_effort;
const char *case_name;
static struct test_case *first, **last = &first;

void add_case(struct test_case *added) {
    *last = added;
    last = &added->next;
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (struct test_case *each = first; each; each = each->next)
            printf("%s\t%s\t%s\n", each->name, each->kind, each->about);
        return 0;
    }
    if (count == 2 && strcmp(arguments[1], "--malloc") == 0) {
        Dl_info of_malloc;
        if (!dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc)) return 1;
        puts(of_malloc.dli_fname);
        return 0;
    }
    if (count < 2) {
        fprintf(stderr, "usage: suite --list | --malloc | CASE [--quick]\n");
        return 2;
    }
    quick_effort = count > 2 && strcmp(arguments[2], "--quick") == 0;
    for (struct test_case *each = first; each; each = each->next)
        if (strcmp(each->name, arguments[1]) == 0) {
            case_name = each->name;
            if (strcmp(each->kind, CONTROL) == 0 && !control())
                not_applicable("no heaptoll_control_v1");
            each->run();
            if (strcmp(each->kind, MISUSE) != 0 && strcmp(each->kind, SECURITY) != 0)
                check_heap("after the case");
            /* Handlers of exit and destructors run from here: some cases are about them. */
            return 0;
        }
    fail("there is no case %s", arguments[1]);
}
