/* stacks.c: threads and coroutines that have little stack allocate, so that collections happen on them. What lies below
 * their stacks is the program's: a collection must neither end there nor write there.
 */
#include "proof.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* The pattern of a page covers each of its bytes. */
enum { LITTLE = 8 * 1024, PAGE = 4096, PAGES = 16, THREADS = 3 };

struct link {
    struct link *next;
    size_t number;
};

/* A list that only the caller's stack holds, and garbage; some collections are requested. */
static void allocates(void) {
    size_t count = effort(20000, 3000);
    struct link *list = NULL;
    for (size_t number = 0; number < count; number++) {
        struct link *link = malloc(sizeof *link);
        CHECK(link && malloc(300) && calloc(3, 100), "no memory");
        *link = (struct link){list, number};
        list = link;
        if (number % (count / 4) == 0)
            collect();
    }
    for (size_t number = count; number-- > 0; list = list->next)
        CHECK(list && list->number == number, "link %zu of a list that is held was reclaimed", number);
    CHECK(!list, "the list has more links than were made");
}

static void *allocates_in_thread(void *unused) {
    (void)unused;
    allocates();
    return NULL;
}

CASE(PLAIN, little_thread, "threads with the least stack that there is allocate until collections happen") {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t least = (size_t)PTHREAD_STACK_MIN;
    CHECK(pthread_attr_setstacksize(&attributes, least) == 0, "pthread_attr_setstacksize(%zu)", least);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &attributes, allocates_in_thread, NULL) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        join_thread(threads[i]);
    pthread_attr_destroy(&attributes);
}

static ucontext_t home, away;

/* What the program may have below a coroutine's stack. */
struct area {
    unsigned char below[PAGES][PAGE];
    char stack[2 * LITTLE];
};

static void fill_below(struct area *area) {
    for (int page = 0; page < PAGES; page++)
        fill(area->below[page], PAGE, 90);
}

static void check_below(const struct area *area, const char *where) {
    for (int page = 0; page < PAGES; page++)
        check_filled(area->below[page], PAGE, 90, where);
}

static void on_little(struct area *area, const char *where) {
    fill_below(area);
    CHECK(getcontext(&away) == 0, "getcontext: errno %d", errno);
    away.uc_stack.ss_sp = area->stack;
    away.uc_stack.ss_size = LITTLE;
    away.uc_link = &home;
    makecontext(&away, allocates, 0);
    CHECK(swapcontext(&home, &away) == 0, "swapcontext: errno %d", errno);
    check_below(area, where);
}

CASE(PLAIN, little_automatic, "a coroutine allocates on 8 KiB of an array of a frame") {
    struct area area;
    on_little(&area, "what lies below a coroutine's stack in a frame");
}

CASE(PLAIN, little_static, "the same on a static array") {
    static struct area area;
    on_little(&area, "static data below a coroutine's stack");
}

CASE(PLAIN, little_block, "the same in a block of malloc") {
    struct area *area = malloc(sizeof *area);
    CHECK(area, "no memory");
    on_little(area, "what lies below a coroutine's stack in a block");
    free(area);
}

static void allocates_in_handler(int signal) {
    (void)signal;
    allocates();
}

CASE(PLAIN, little_alternate, "a handler allocates on an alternate stack of 16 KiB, the signal's frame included") {
    static struct area area;
    fill_below(&area);
    stack_t given = {.ss_sp = area.stack, .ss_size = sizeof area.stack};
    CHECK(sigaltstack(&given, NULL) == 0, "sigaltstack: errno %d", errno);
    struct sigaction action = {.sa_handler = allocates_in_handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    check_below(&area, "static data below an alternate stack");
}
