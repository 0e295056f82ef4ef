/* held.c: places in which a program may keep its only pointer: what the kernel holds for it, and memory of unusual kinds. The
 * table below has each place once, with whether collections keep what it points to. `docs/method/limits.md`
 * has the same rows, which a test compares.
 */
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, SPARED = KEPT / 4, ALTERNATE = 64 * 1024 };

static struct kept kept;
/* The head of a chain, until a place has it. */
static void *volatile words[1];
static int descriptors[4];
static void *volatile *mapped;

/* A place that this system, or this user, does not have. */
static int skipped;
#define HAVE(condition, what)                                     \
    do {                                                          \
        if (!(condition)) {                                       \
            note("not tried: %s: errno %d", what, errno);         \
            skipped = 1;                                          \
            return;                                               \
        }                                                         \
    } while (0)

static void close_all(void) {
    for (int i = 0; i < 4; i++) {
        if (descriptors[i] > 0)
            close(descriptors[i]);
        descriptors[i] = 0;
    }
}

/* --- epoll, timers, signals -------------------------------------------------------------------------------------- */

static void give_epoll(void) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = words[0]};
    descriptors[0] = eventfd(0, EFD_CLOEXEC);
    descriptors[1] = epoll_create1(EPOLL_CLOEXEC);
    CHECK(epoll_ctl(descriptors[1], EPOLL_CTL_ADD, descriptors[0], &event) == 0, "epoll_ctl: errno %d", errno);
}

/* The set's own descriptor is closed, and another set has its number. */
static void give_epoll_copy(void) {
    give_epoll();
    collect();
    descriptors[2] = fcntl(descriptors[1], F_DUPFD_CLOEXEC, 100);
    close(descriptors[1]);
    descriptors[1] = epoll_create(1);
    CHECK(descriptors[1] >= 0 && descriptors[2] >= 100, "epoll_create: errno %d", errno);
}

static timer_t timer;

static void give_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_ptr = words[0]};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create: errno %d", errno);
}
static void take_timer(void) { timer_delete(timer); }

static void block(int signal, int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(how, &set, NULL);
}

static void give_signal(void) {
    union sigval value = {.sival_ptr = words[0]};
    block(SIGRTMIN, SIG_BLOCK);
    CHECK(sigqueue(getpid(), SIGRTMIN, value) == 0, "sigqueue: errno %d", errno);
}
static void give_thread_signal(void) {
    union sigval value = {.sival_ptr = words[0]};
    block(SIGRTMIN, SIG_BLOCK);
    CHECK(pthread_sigqueue(pthread_self(), SIGRTMIN, value) == 0, "pthread_sigqueue");
}
static void take_signal(void) {
    sigset_t set;
    siginfo_t information;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    CHECK(sigwaitinfo(&set, &information) == SIGRTMIN, "sigwaitinfo: errno %d", errno);
    CHECK(information.si_value.sival_ptr == undisguise(kept.address[0]), "the value of a signal has changed");
    memset(&information, 0, sizeof information);
    hidden_pointer(&information);
}

/* --- what the kernel holds for a thread -------------------------------------------------------------------------- */

enum { SET_GS = 0x1001 };

static void give_gs(void) { CHECK(syscall(SYS_arch_prctl, SET_GS, words[0]) == 0, "arch_prctl: errno %d", errno); }
static void take_gs(void) { syscall(SYS_arch_prctl, SET_GS, 0L); }

static stack_t former;

static void give_alternate_stack(void) {
    /* The lowest word of the stack, which is a block, has the chain. Handlers may run at its other end. */
    void *volatile *block = malloc(ALTERNATE);
    CHECK(block, "malloc gave null");
    block[0] = words[0];
    stack_t stack = {.ss_sp = (void *)block, .ss_size = ALTERNATE};
    CHECK(sigaltstack(&stack, &former) == 0, "sigaltstack: errno %d", errno);
}
static void take_alternate_stack(void) {
    former.ss_flags = SS_DISABLE;
    sigaltstack(&former, NULL);
}

/* --- rings ------------------------------------------------------------------------------------------------------- */

static struct {
    char *submitted, *completed;
    struct io_uring_sqe *requests;
    struct io_uring_params facts;
} ring;

static void open_ring(void) {
    memset(&ring, 0, sizeof ring);
    descriptors[0] = (int)syscall(SYS_io_uring_setup, 4, &ring.facts);
    HAVE(descriptors[0] > 0, "io_uring");
    int shared = PROT_READ | PROT_WRITE;
    ring.submitted = mmap(NULL, 2 * PAGE, shared, MAP_SHARED, descriptors[0], IORING_OFF_SQ_RING);
    ring.requests = mmap(NULL, PAGE, shared, MAP_SHARED, descriptors[0], IORING_OFF_SQES);
    CHECK(ring.submitted != MAP_FAILED && (void *)ring.requests != MAP_FAILED, "rings: errno %d", errno);
}

static void request(int operation, int file) {
    struct io_uring_sqe *request = ring.requests;
    *request = (struct io_uring_sqe){.opcode = (uint8_t)operation, .fd = file, .poll32_events = POLLIN,
                                     .user_data = (uint64_t)(uintptr_t)words[0]};
    *(uint32_t *)(void *)(ring.submitted + ring.facts.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(void *)(ring.submitted + ring.facts.sq_off.tail), 1, __ATOMIC_RELEASE);
}

static void submit(int completions) {
    long status = syscall(SYS_io_uring_enter, descriptors[0], 1, completions, IORING_ENTER_GETEVENTS, NULL, 0);
    CHECK(status == 1, "io_uring_enter: %ld, errno %d", status, errno);
    memset(ring.requests, 0, sizeof *ring.requests);
}

static void give_request(void) {
    open_ring();
    if (!skipped)
        request(IORING_OP_NOP, -1);
}
static void give_completion(void) {
    give_request();
    if (!skipped)
        submit(1);
}
static void give_request_under_way(void) {
    open_ring();
    if (skipped)
        return;
    descriptors[1] = eventfd(0, EFD_CLOEXEC);
    request(IORING_OP_POLL_ADD, descriptors[1]);
    submit(0);
}
static void take_ring(void) {
    if (ring.submitted) {
        munmap(ring.submitted, 2 * PAGE);
        munmap(ring.requests, PAGE);
    }
    close_all();
}

static aio_context_t context;

static void give_io_submit(void) {
    static struct iocb operation;
    struct iocb *list[1] = {&operation};
    context = 0;
    HAVE(syscall(SYS_io_setup, 4, &context) == 0, "io_setup");
    descriptors[0] = eventfd(0, EFD_CLOEXEC);
    operation = (struct iocb){.aio_data = (uint64_t)(uintptr_t)words[0], .aio_lio_opcode = IOCB_CMD_POLL,
                              .aio_fildes = (uint32_t)descriptors[0], .aio_buf = POLLIN};
    CHECK(syscall(SYS_io_submit, context, 1, list) == 1, "io_submit: errno %d", errno);
    memset(&operation, 0, sizeof operation);
}
static void give_io_event(void) {
    give_io_submit();
    if (skipped)
        return;
    uint64_t one = 1;
    CHECK(write(descriptors[0], &one, sizeof one) == sizeof one, "write: errno %d", errno);
}
static void take_io_submit(void) {
    close_all();
    syscall(SYS_io_destroy, context);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void give_mapping(void *at) {
    HAVE(at != MAP_FAILED, "a mapping");
    mapped = at;
    mapped[3] = words[0];
}
static void take_mapping(void) {
    mapped[3] = NULL;
    munmap((void *)mapped, PAGE);
    close_all();
}

static int segment;

static void give_system_v(void) {
    segment = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    HAVE(segment >= 0, "shmget");
    void *at = shmat(segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL);
    give_mapping(at == (void *)-1 ? MAP_FAILED : at);
}
static void take_system_v(void) {
    mapped[3] = NULL;
    shmdt((const void *)mapped);
}

static void give_detached(void) {
    segment = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    HAVE(segment >= 0, "shmget");
    void *volatile *at = shmat(segment, NULL, 0);
    CHECK((void *)at != (void *)-1, "shmat: errno %d", errno);
    at[3] = words[0];
    shmdt((const void *)at);
}
static void take_detached(void) { shmctl(segment, IPC_RMID, NULL); }

enum { BOTH = PROT_READ | PROT_WRITE, HUGE_PAGE = 2 << 20 };

static void give_secret(void) {
    descriptors[0] = (int)syscall(SYS_memfd_secret, 0);
    HAVE(descriptors[0] > 0 && ftruncate(descriptors[0], PAGE) == 0, "memfd_secret");
    give_mapping(mmap(NULL, PAGE, BOTH, MAP_SHARED, descriptors[0], 0));
}

static void give_huge(void) {
    give_mapping(mmap(NULL, HUGE_PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0));
}
static void take_huge(void) {
    mapped[3] = NULL;
    munmap((void *)mapped, HUGE_PAGE);
}

static void give_locked(void) {
    void *at = mmap(NULL, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    give_mapping(at);
    mlock(at, PAGE);
    madvise(at, PAGE, MADV_DONTFORK);
    madvise(at, PAGE, MADV_DONTDUMP);
}

/* The page after it is a guard, which a reader must not touch. */
static void give_at_guard(void) {
    enum { GUARD_INSTALL = 102 };
    char *at = mmap(NULL, 2 * PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HAVE(at != MAP_FAILED && madvise(at + PAGE, PAGE, GUARD_INSTALL) == 0, "MADV_GUARD_INSTALL");
    give_mapping(at);
}
static void take_at_guard(void) {
    mapped[3] = NULL;
    munmap((void *)mapped, 2 * PAGE);
}

static void give_inaccessible(void) {
    give_mapping(mmap(NULL, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(mprotect((void *)mapped, PAGE, PROT_NONE) == 0, "mprotect: errno %d", errno);
}
static void take_unwritable(void) {
    munmap((void *)mapped, PAGE);
    close_all();
}

static void give_write_only(void) { give_mapping(mmap(NULL, PAGE, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }

/* A view for reading of a file that was written through another mapping, which is gone. */
static void give_view(void) {
    CHECK(descriptors[0] >= 0 && ftruncate(descriptors[0], PAGE) == 0, "a file: errno %d", errno);
    give_mapping(mmap(NULL, PAGE, BOTH, MAP_SHARED, descriptors[0], 0));
    munmap((void *)mapped, PAGE);
    mapped = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, descriptors[0], 0);
}
static void give_nameless_view(void) {
    descriptors[0] = memfd_create("proof", MFD_CLOEXEC);
    give_view();
}

static char view_path[] = "/tmp/proof-view-XXXXXX";

static void give_named_view(void) {
    descriptors[0] = mkstemp(view_path);
    give_view();
}
static void take_named_view(void) {
    unlink(view_path);
    take_unwritable();
}

static void give_file(void) {
    descriptors[0] = memfd_create("proof", MFD_CLOEXEC);
    CHECK(write(descriptors[0], (const void *)words, sizeof words) == sizeof words, "write: errno %d", errno);
}

/* --- what the kernel holds and does not show --------------------------------------------------------------------- */

static void write_to(int file) {
    CHECK(write(file, (const void *)words, sizeof words) == sizeof words, "write: errno %d", errno);
}
static void give_pipe(void) {
    CHECK(pipe(descriptors) == 0, "pipe: errno %d", errno);
    write_to(descriptors[1]);
}
static void give_socket(void) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, descriptors) == 0, "socketpair: errno %d", errno);
    write_to(descriptors[1]);
}
static void give_counter(void) {
    descriptors[0] = eventfd(0, EFD_CLOEXEC);
    write_to(descriptors[0]);
}

static void give_queue(void) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof words};
    descriptors[0] = mq_open("/heaptoll-proof", O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
    HAVE(descriptors[0] > 0, "mq_open");
    mq_unlink("/heaptoll-proof");
}
static void give_message(void) {
    give_queue();
    if (!skipped)
        CHECK(mq_send(descriptors[0], (const void *)words, sizeof words, 0) == 0, "mq_send: errno %d", errno);
}
static void give_notification(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_ptr = words[0]};
    give_queue();
    if (!skipped)
        CHECK(mq_notify(descriptors[0], &event) == 0, "mq_notify: errno %d", errno);
}

struct message {
    long kind;
    void *word;
};
static void give_system_v_message(void) {
    segment = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    HAVE(segment >= 0, "msgget");
    struct message message = {1, words[0]};
    CHECK(msgsnd(segment, &message, sizeof message.word, 0) == 0, "msgsnd: errno %d", errno);
}
static void take_system_v_message(void) { msgctl(segment, IPC_RMID, NULL); }

static struct robust_list_head *robust;
static size_t robust_bytes;

static void give_robust_list(void) {
    CHECK(syscall(SYS_get_robust_list, 0, &robust, &robust_bytes) == 0, "get_robust_list: errno %d", errno);
    CHECK(syscall(SYS_set_robust_list, words[0], robust_bytes) == 0, "set_robust_list: errno %d", errno);
}
static void take_robust_list(void) { syscall(SYS_set_robust_list, robust, robust_bytes); }

static void give_offset(void) {
    descriptors[0] = memfd_create("proof", MFD_CLOEXEC);
    CHECK(lseek(descriptors[0], (off_t)(uintptr_t)words[0], SEEK_SET) > 0, "lseek: errno %d", errno);
}

static struct rlimit limit;

static void give_limit(void) {
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit: errno %d", errno);
    struct rlimit changed = {(rlim_t)(uintptr_t)words[0], limit.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &changed) == 0, "setrlimit: errno %d", errno);
}
static void take_limit(void) { setrlimit(RLIMIT_FSIZE, &limit); }

static void give_key(void) {
    enum { PROCESS_KEYRING = -2 };
    segment = (int)syscall(SYS_add_key, "user", "heaptoll-proof", words, sizeof words, PROCESS_KEYRING);
    HAVE(segment > 0, "add_key");
}
static void take_key(void) {
    enum { INVALIDATE = 21 };
    syscall(SYS_keyctl, INVALIDATE, segment);
}

static void give_handler(void) {
    struct sigaction action = {.sa_handler = (void (*)(int))(uintptr_t)words[0]};
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0, "sigaction: errno %d", errno);
}
static void take_handler(void) { signal(SIGUSR2, SIG_DFL); }

/* --- disguises --------------------------------------------------------------------------------------------------- */

static struct {
    char byte;
    char word[sizeof(void *)];
} odd;

static void give_odd(void) { memcpy(odd.word, (const void *)words, sizeof odd.word); }
static void take_odd(void) { memset(&odd, 0, sizeof odd); }

static uintptr_t inverted;

static void give_inverted(void) { inverted = ~(uintptr_t)words[0]; }
static void take_inverted(void) { inverted = 0; }

static void give_tagged(void) { inverted = (uintptr_t)words[0] | (uintptr_t)1 << 63; }

/* --- the table --------------------------------------------------------------------------------------------------- */

/* REPORTED: lost, but Tithe's log and the table of `run` have it. */
enum keeps { LOST, REPORTED, HELD };
/* Tried in the thread that collects, and in another one too. */
enum { BY_ANY_THREAD = 1 };

static const struct place {
    const char *name;
    enum keeps keeps;
    void (*give)(void), (*take)(void);
    int threads;
} PLACES[] = {
    /* table begins */
    {"the data of an `epoll_event`", HELD, give_epoll, close_all, BY_ANY_THREAD},
    {"the same in a set whose descriptor was copied and closed", HELD, give_epoll_copy, close_all, 0},
    {"the value of a timer (`timer_create`)", HELD, give_timer, take_timer, 0},
    {"the value of a signal that waits (`sigqueue`)", HELD, give_signal, take_signal, 0},
    {"the same for one thread (`pthread_sigqueue`)", HELD, give_thread_signal, take_signal, BY_ANY_THREAD},
    {"the base of the segment GS", HELD, give_gs, take_gs, BY_ANY_THREAD},
    {"the address of an alternate signal stack", HELD, give_alternate_stack, take_alternate_stack, BY_ANY_THREAD},
    {"a request in the ring of io_uring", HELD, give_request, take_ring, 0},
    {"a completion in the ring of io_uring", HELD, give_completion, take_ring, 0},
    {"an event of `io_submit` that was not fetched", HELD, give_io_event, take_io_submit, 0},
    {"System V shared memory", HELD, give_system_v, take_system_v, 0},
    {"secret memory (`memfd_secret`)", HELD, give_secret, take_mapping, 0},
    {"huge pages (`MAP_HUGETLB`)", HELD, give_huge, take_huge, 0},
    {"memory that is locked, not inherited and not dumped", HELD, give_locked, take_mapping, 0},
    {"memory next to a guard page (`MADV_GUARD_INSTALL`)", HELD, give_at_guard, take_at_guard, 0},
    {"memory that can only be written (`PROT_WRITE`)", HELD, give_write_only, take_mapping, 0},
    {"a private view of a file without a name, written by other means", HELD, give_nameless_view, take_unwritable, 0},
    {"the user data of a request that io_uring has taken", REPORTED, give_request_under_way, take_ring, 0},
    {"the data of a request that `io_submit` has taken", REPORTED, give_io_submit, take_io_submit, 0},
    {"a pipe", LOST, give_pipe, close_all, 0},
    {"a socket", LOST, give_socket, close_all, 0},
    {"the counter of an `eventfd`", LOST, give_counter, close_all, 0},
    {"a POSIX message", LOST, give_message, close_all, 0},
    {"the value of `mq_notify`", LOST, give_notification, close_all, 0},
    {"a System V message", LOST, give_system_v_message, take_system_v_message, 0},
    {"a file, or memory without a mapping", LOST, give_file, close_all, 0},
    {"System V shared memory that is detached", LOST, give_detached, take_detached, 0},
    {"memory without any access (`PROT_NONE`)", LOST, give_inaccessible, take_unwritable, 0},
    {"a private view of a file with a name, written by other means", LOST, give_named_view, take_named_view, 0},
    {"the head of a robust list (`set_robust_list`)", LOST, give_robust_list, take_robust_list, 0},
    {"the handler of a signal (`sigaction`)", LOST, give_handler, take_handler, 0},
    {"a key (`add_key`)", LOST, give_key, take_key, 0},
    {"the offset of a file", LOST, give_offset, close_all, 0},
    {"a limit (`setrlimit`)", LOST, give_limit, take_limit, 0},
    {"an odd address", LOST, give_odd, take_odd, 0},
    {"a word that is not the address (inverted, compressed)", LOST, give_inverted, take_inverted, 0},
    {"an address with a tag in its highest bits", LOST, give_tagged, take_inverted, 0},
    /* table ends */
};

static int given, released;

static void *gives(void *place) {
    ((const struct place *)place)->give();
    words[0] = NULL;
    scrub_stack(SCRUB);
    set_flag(&given, 1);
    await_flag(&released, 1, "the release of a thread");
    if (!skipped)
        ((const struct place *)place)->take();
    scrub_stack(SCRUB);
    return NULL;
}

static void fill_words(const struct place *place) {
    static uint64_t seed;
    skipped = 0;
    keep(&kept, place->name, words, 0, 0, ++seed);
    scrub_stack(SCRUB);
}

static void try(const struct place *place) {
    fill_words(place);
    place->give();
    words[0] = NULL;
    scrub_stack(SCRUB);
    if (skipped)
        return;
    if (place->keeps == HELD)
        check_kept(&kept);
    else
        check_gone(&kept, SPARED);
    place->take();
    check_gone(&kept, SPARED);
}

static void try_in_thread(const struct place *place) {
    fill_words(place);
    set_flag(&given, 0);
    set_flag(&released, 0);
    pthread_t thread = start_thread(gives, (void *)(uintptr_t)place);
    await_flag(&given, 1, "a thread to be ready");
    scrub_stack(SCRUB);
    if (!skipped)
        check_kept(&kept);
    set_flag(&released, 1);
    join_thread(thread);
    if (!skipped)
        check_gone(&kept, SPARED);
}

static void try_all(int held) {
    /* A word that is left where the heap began holds the first block. It must not be the head of a chain. */
    hidden_pointer(malloc(48));
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        if ((PLACES[i].keeps == HELD) != held)
            continue;
        try(&PLACES[i]);
        if (PLACES[i].threads & BY_ANY_THREAD)
            try_in_thread(&PLACES[i]);
    }
}

CASE(PLAIN, held_by_the_kernel, "pointers that the kernel holds and shows, and in memory of unusual kinds, keep their blocks") {
    try_all(1);
}

CASE(PLAIN, held_unseen, "pointers in places that no collection can read do not keep their blocks: they are documented") {
    if (mode() != GUARD)
        needs_collector();
    try_all(0);
}
