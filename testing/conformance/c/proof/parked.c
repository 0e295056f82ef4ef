/* parked.c: pointers held only by a thread: in its registers, on its stack, wherever that is, in its thread-local data.
 * The thread waits somewhere while the main thread collects.
 */
#include "proof.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { SPARED = 1, STACK_BYTES = 256 * 1024 };

static struct kept kept;
static int ready, released;

static void *map(size_t bytes) {
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(found != MAP_FAILED, "mmap of %zu bytes: errno %d", bytes, errno);
    return found;
}

static void clear(void *volatile *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        words[i] = NULL;
}

/* Reports that it is ready and waits to be released, without leaving words on the stack. */
static void park(void) {
    scrub_stack(SCRUB / 2);
    set_flag(&ready, 1);
    await_flag(&released, 1, "the release of a parked thread");
    scrub_stack(SCRUB / 2);
}

/* The C library keeps the stacks of ended threads for new ones, and on them lie the kernel's copies of the registers
 * for the stop signal. A thread wipes them before it ends. */
struct errand {
    void *(*function)(void *);
    void *argument;
};

static void *runs(void *given) {
    const struct errand *errand = given;
    errand->function(errand->argument);
    scrub_stack(SCRUB);
    return NULL;
}

/* Parks a thread in `function`, checks what it keeps, and releases it. */
static void check_parked(void *(*function)(void *), void *argument, const pthread_attr_t *attributes) {
    set_flag(&ready, 0);
    set_flag(&released, 0);
    struct errand errand = {function, argument};
    pthread_t thread;
    int status = pthread_create(&thread, attributes, runs, &errand);
    CHECK(status == 0, "pthread_create: %d", status);
    await_flag(&ready, 1, "a thread to be ready");
    scrub_stack(SCRUB);
    check_kept(&kept);
    set_flag(&released, 1);
    join_thread(thread);
    check_gone(&kept, SPARED);
}

static void *on_stack(void *argument) {
    void *volatile words[KEPT];
    keep(&kept, argument, words, KEPT, 0, 3);
    park();
    clear(words, KEPT);
    return NULL;
}

CASE(PLAIN, thread_stack, "pointers on the stack of another thread") {
    check_parked(on_stack, "the stack of a thread", NULL);
}

static __thread void *volatile thread_words[KEPT];

static void *in_thread_data(void *argument) {
    keep(&kept, argument, thread_words, KEPT, 1, 4);
    park();
    clear(thread_words, KEPT);
    return NULL;
}

CASE(PLAIN, thread_data, "pointers in the thread-local data of another thread") {
    check_parked(in_thread_data, "thread-local data", NULL);
}

static void *in_keys(void *argument) {
    static pthread_key_t keys[KEPT];
    void *volatile words[KEPT];
    for (int i = 0; i < KEPT; i++)
        CHECK(pthread_key_create(&keys[i], NULL) == 0, "pthread_key_create");
    keep(&kept, argument, words, KEPT, 0, 5);
    for (int i = 0; i < KEPT; i++)
        CHECK(pthread_setspecific(keys[i], words[i]) == 0, "pthread_setspecific");
    clear(words, KEPT);
    park();
    for (int i = 0; i < KEPT; i++)
        pthread_setspecific(keys[i], NULL);
    return NULL;
}

CASE(PLAIN, thread_keys, "pointers held only by pthread_setspecific, of more keys than fit in the thread itself") {
    check_parked(in_keys, "pthread keys", NULL);
}

/* --- registers ------------------------------------------------------------------------------------------------- */

#if defined __x86_64__
static void *volatile register_words[KEPT];

static void *in_registers(void *argument) {
    keep(&kept, argument, register_words, 6, 0, 6);
    scrub_stack(SCRUB);
    /* Six words: four registers and two in the red zone below the stack pointer, and nowhere else. */
    __asm__ volatile(
        "subq $4096, %%rsp\n"
        "movq 0(%0), %%r8\n movq 8(%0), %%r12\n movq 16(%0), %%rax\n movq 24(%0), %%r15\n"
        "movq 32(%0), %%rdx\n movq %%rdx, -8(%%rsp)\n"
        "movq 40(%0), %%rdx\n movq %%rdx, -128(%%rsp)\n"
        "xorl %%edx, %%edx\n"
        "movq %%rdx, 0(%0)\n movq %%rdx, 8(%0)\n movq %%rdx, 16(%0)\n movq %%rdx, 24(%0)\n movq %%rdx, 32(%0)\n"
        "movq %%rdx, 40(%0)\n"
        "movl $1, (%1)\n"
        "1: pause\n cmpl $0, (%2)\n je 1b\n"
        "movq %%r8, 0(%0)\n movq %%r12, 8(%0)\n movq %%rax, 16(%0)\n movq %%r15, 24(%0)\n"
        "movq -8(%%rsp), %%rdx\n movq %%rdx, 32(%0)\n"
        "movq -128(%%rsp), %%rdx\n movq %%rdx, 40(%0)\n"
        "addq $4096, %%rsp\n"
        :
        : "r"(register_words), "r"(&ready), "r"(&released)
        : "rax", "rdx", "r8", "r12", "r15", "memory", "cc");
    for (int i = 0; i < 6; i++)
        CHECK(register_words[i] == undisguise(kept.address[i]), "register %d changed", i);
    check_whole(&kept);
    clear(register_words, 6);
    return NULL;
}

CASE(PLAIN, thread_registers, "pointers in registers and in the red zone of a running thread") {
    check_parked(in_registers, "registers and red zone", NULL);
}

static void check_across(void) {
    scrub_stack(SCRUB);
    check_kept(&kept);
}
static void (*volatile across)(void) = check_across;

CASE(PLAIN, registers_across_call, "pointers in registers that a call preserves, while the callee collects") {
    keep(&kept, "registers across a call", register_words, 4, 0, 17);
    scrub_stack(SCRUB);
    /* The frame has a red zone, and the callee an aligned stack. */
    __asm__ volatile(
        "movq %%rsp, %%rbx\n subq $256, %%rsp\n andq $-64, %%rsp\n"
        "movq %0, %%r12\n movq %1, %%r13\n movq %2, %%r14\n movq %3, %%r15\n"
        "movq $0, %0\n movq $0, %1\n movq $0, %2\n movq $0, %3\n"
        "call *%4\n"
        "movq %%r12, %0\n movq %%r13, %1\n movq %%r14, %2\n movq %%r15, %3\n"
        "xorl %%r12d, %%r12d\n xorl %%r13d, %%r13d\n xorl %%r14d, %%r14d\n xorl %%r15d, %%r15d\n"
        "movq %%rbx, %%rsp\n"
        : "+m"(register_words[0]), "+m"(register_words[1]), "+m"(register_words[2]), "+m"(register_words[3])
        : "m"(across)
        : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "memory", "cc");
    for (int i = 0; i < 4; i++)
        CHECK(register_words[i] == undisguise(kept.address[i]), "register %d changed", i);
    clear(register_words, KEPT);
    check_gone(&kept, SPARED);
}

static void *in_xmm(void *argument) {
    keep(&kept, argument, register_words, 2, 0, 7);
    scrub_stack(SCRUB);
    __asm__ volatile(
        "movdqu (%0), %%xmm7\n"
        "pxor %%xmm0, %%xmm0\n movdqu %%xmm0, (%0)\n"
        "movl $1, (%1)\n"
        "1: pause\n cmpl $0, (%2)\n je 1b\n"
        "movdqu %%xmm7, (%0)\n pxor %%xmm7, %%xmm7\n"
        :
        : "r"(register_words), "r"(&ready), "r"(&released)
        : "xmm0", "xmm7", "memory", "cc");
    check_whole(&kept);
    clear(register_words, KEPT);
    return NULL;
}

__attribute__((target("avx2"))) static void *in_ymm(void *argument) {
    keep(&kept, argument, register_words, 4, 0, 8);
    scrub_stack(SCRUB);
    __asm__ volatile(
        "vmovdqu (%0), %%ymm9\n"
        "vpxor %%ymm0, %%ymm0, %%ymm0\n vmovdqu %%ymm0, (%0)\n"
        "movl $1, (%1)\n"
        "1: pause\n cmpl $0, (%2)\n je 1b\n"
        "vmovdqu %%ymm9, (%0)\n vzeroall\n"
        :
        : "r"(register_words), "r"(&ready), "r"(&released)
        : "xmm0", "xmm9", "memory", "cc");
    check_whole(&kept);
    clear(register_words, KEPT);
    return NULL;
}

__attribute__((target("avx512f"))) static void *in_zmm(void *argument) {
    keep(&kept, argument, register_words, 16, 0, 9);
    scrub_stack(SCRUB);
    __asm__ volatile(
        "vmovdqu64 (%0), %%zmm5\n vmovdqu64 64(%0), %%zmm20\n"
        "vpxorq %%zmm0, %%zmm0, %%zmm0\n vmovdqu64 %%zmm0, (%0)\n vmovdqu64 %%zmm0, 64(%0)\n"
        "movl $1, (%1)\n"
        "1: pause\n cmpl $0, (%2)\n je 1b\n"
        "vmovdqu64 %%zmm5, (%0)\n vmovdqu64 %%zmm20, 64(%0)\n"
        "vpxorq %%zmm20, %%zmm20, %%zmm20\n vzeroall\n"
        :
        : "r"(register_words), "r"(&ready), "r"(&released)
        : "xmm0", "xmm5", "xmm20", "memory", "cc");
    check_whole(&kept);
    clear(register_words, KEPT);
    return NULL;
}

CASE(PLAIN, thread_vectors, "pointers in vector registers only: memmove has them nowhere else for a short time") {
    check_parked(in_xmm, "an xmm register", NULL);
    if (__builtin_cpu_supports("avx2"))
        check_parked(in_ymm, "a ymm register", NULL);
    if (__builtin_cpu_supports("avx512f"))
        check_parked(in_zmm, "zmm registers", NULL);
}

static void *volatile sliding[4096];
static int sliding_stop;

static void *slides(void *argument) {
    (void)argument;
    while (!get_flag(&sliding_stop)) {
        memmove((void *)(sliding + 1), (void *)sliding, (KEPT + 15) * sizeof(void *));
        memmove((void *)sliding, (void *)(sliding + 1), (KEPT + 15) * sizeof(void *));
    }
    return NULL;
}

CASE(PLAIN, thread_memmove, "an array of pointers that memmove slides to and fro while another thread collects") {
    keep(&kept, "an array that memmove slides", sliding, KEPT, 0, 10);
    scrub_stack(SCRUB);
    pthread_t thread = start_thread(slides, NULL);
    for (size_t i = 0; i < effort(400, 100); i++) {
        collect();
        if (i % 10 == 0)
            check_whole(&kept);
    }
    set_flag(&sliding_stop, 1);
    join_thread(thread);
    check_kept(&kept);
}
#endif

/* --- other stacks ------------------------------------------------------------------------------------- */

static void on_given_stack(const char *where, void *stack) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int status = pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    CHECK(status == 0, "pthread_attr_setstack: %d", status);
    check_parked(on_stack, (void *)where, &attributes);
    pthread_attr_destroy(&attributes);
}

CASE(PLAIN, stack_mapped, "a thread whose stack the program mapped") { on_given_stack("a mapped stack", map(STACK_BYTES)); }

CASE(PLAIN, stack_block, "a thread whose stack is a block of malloc that nothing else points to") {
    static disguised where;
    void *stack = NULL;
    CHECK(posix_memalign(&stack, 4096, STACK_BYTES) == 0, "posix_memalign");
    where = disguise(stack);
    on_given_stack("a stack in a block", stack);
    CHECK(is_live(where) != 0 || collects(), "the stack was reclaimed");
    free(undisguise(where));
}

CASE(PLAIN, stack_above_data, "a thread whose stack lies above data in the same mapping") {
    static struct kept below;
    char *area = map(5 * STACK_BYTES);
    /* What is below it resembles the guard of a stack. */
    CHECK(mprotect(area, STACK_BYTES, PROT_NONE) == 0, "mprotect: errno %d", errno);
    area += STACK_BYTES;
    keep(&below, "data below a stack in the same mapping", (void *volatile *)(void *)area, KEPT, 0, 11);
    on_given_stack("a stack above data", area + STACK_BYTES);
    check_kept(&below);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, area + STACK_BYTES, STACK_BYTES) == 0, "pthread_attr_setstack");
    set_flag(&ready, 0);
    set_flag(&released, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, on_stack, "a stack above data") == 0, "pthread_create");
    await_flag(&ready, 1, "a thread to be ready");
    scrub_stack(SCRUB);
    check_kept(&below);
    check_kept(&kept);
    set_flag(&released, 1);
    join_thread(thread);
    clear((void *volatile *)(void *)area, KEPT);
    check_gone(&below, SPARED);
}

static size_t frames_left;
static void (*at_bottom)(void);

static void check_at_bottom(void) {
    scrub_stack(SCRUB);
    check_kept(&kept);
}

APART static void frame(void *volatile *words) {
    /* The pointers lie at the lowest address of a frame of 1 MiB, and are copied down frame by frame. */
    char *large = alloca((size_t)1 << 20);
    void *volatile *own = (void *volatile *)(void *)large;
    for (int i = 0; i < KEPT; i++) {
        own[i] = words[i];
        words[i] = NULL;
    }
    if (frames_left-- > 0)
        frame(own);
    else
        at_bottom();
    clear(own, KEPT);
    hidden_pointer(large);
}

static void *in_frames(void *argument) {
    void *volatile words[KEPT];
    keep(&kept, argument, words, KEPT, 1, 12);
    frame(words);
    return NULL;
}

CASE(PLAIN, stack_frames, "pointers deep in frames of 1 MiB by alloca") {
    frames_left = 4;
    at_bottom = park;
    check_parked(in_frames, "a frame of 1 MiB", NULL);
    frames_left = 3;
    static void *volatile words[KEPT];
    keep(&kept, "a frame of 1 MiB of the main thread", words, KEPT, 0, 13);
    at_bottom = check_at_bottom;
    frame(words);
    check_gone(&kept, SPARED);
}

/* --- alternate signal stacks ----------------------------------------------------------------------------------- */

static void *volatile handed[KEPT];

static void holds(int number) {
    (void)number;
    void *volatile words[KEPT];
    for (int i = 0; i < KEPT; i++) {
        words[i] = handed[i];
        handed[i] = NULL;
    }
    set_flag(&ready, 1);
    while (!get_flag(&released))
        __asm__ volatile("pause" ::: "memory");
    check_whole(&kept);
    clear(words, KEPT);
    scrub_stack(SCRUB / 2);
}

static void *in_handler(void *stack) {
    stack_t given = {.ss_sp = stack, .ss_size = STACK_BYTES}, none = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&given, NULL) == 0, "sigaltstack: errno %d", errno);
    stack = NULL;
    given.ss_sp = NULL;
    scrub_stack(SCRUB);
    raise(SIGUSR1);
    sigaltstack(&none, NULL);
    return NULL;
}

static void on_alternate_stack(const char *where, void *stack) {
    struct sigaction action = {.sa_handler = holds, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    keep(&kept, where, handed, KEPT, 0, 14);
    check_parked(in_handler, stack, NULL);
}

CASE(PLAIN, altstack_mapped, "a handler on an alternate stack in mapped memory has the only pointers") {
    on_alternate_stack("an alternate stack", map(STACK_BYTES));
}

CASE(PLAIN, altstack_block, "the same, the alternate stack being a block of malloc") {
    on_alternate_stack("an alternate stack in a block", malloc(STACK_BYTES));
}

CASE(PLAIN, altstack_above_data, "the same, the alternate stack lying above data in the same mapping") {
    static struct kept below;
    char *area = map(2 * STACK_BYTES);
    keep(&below, "data below an alternate stack", (void *volatile *)(void *)area, KEPT, 0, 15);
    struct sigaction action = {.sa_handler = holds, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    keep(&kept, "an alternate stack above data", handed, KEPT, 0, 16);
    set_flag(&ready, 0);
    set_flag(&released, 0);
    pthread_t thread = start_thread(in_handler, area + STACK_BYTES);
    await_flag(&ready, 1, "a handler to run");
    scrub_stack(SCRUB);
    check_kept(&below);
    check_kept(&kept);
    set_flag(&released, 1);
    join_thread(thread);
}

static void *with_unmapped_alternate(void *stack) {
    stack_t given = {.ss_sp = stack, .ss_size = STACK_BYTES}, none = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&given, NULL) == 0, "sigaltstack: errno %d", errno);
    munmap(stack, STACK_BYTES);
    set_flag(&ready, 1);
    while (!get_flag(&released))
        __asm__ volatile("pause" ::: "memory");
    sigaltstack(&none, NULL);
    return NULL;
}

CASE(PLAIN, altstack_gone, "a thread whose alternate stack was unmapped, and that has no handler which needs it") {
    pthread_t thread = start_thread(with_unmapped_alternate, map(STACK_BYTES));
    await_flag(&ready, 1, "a thread to be ready");
    for (int i = 0; i < 3; i++)
        collect();
    set_flag(&released, 1);
    join_thread(thread);
}

/* --- contexts -------------------------------------------------------------------------------------------------- */

static ucontext_t home, away[2];
static const char *away_where;
static struct kept away_kept[2];
static int away_collects;

static void coroutine(int number) {
    void *volatile words[KEPT];
    keep(&away_kept[number], away_where, words, KEPT, 0, 20 + (uint64_t)number);
    swapcontext(&away[number], &home);
    /* Here again: now the main stack is suspended. */
    if (away_collects) {
        scrub_stack(SCRUB / 2);
        check_kept(&kept);
        check_kept(&away_kept[0]);
        if (number == 1)
            check_kept(&away_kept[1]);
    }
    swapcontext(&away[number], &home);
    check_whole(&away_kept[number]);
    clear(words, KEPT);
    swapcontext(&away[number], &home);
}

static void make_context(int number, char *stack) {
    CHECK(getcontext(&away[number]) == 0, "getcontext");
    away[number].uc_stack.ss_sp = stack;
    away[number].uc_stack.ss_size = STACK_BYTES;
    away[number].uc_link = NULL;
    makecontext(&away[number], (void (*)(void))coroutine, 1, number);
    away[number].uc_stack.ss_sp = NULL;
}

static void with_contexts(const char *where, char *first, char *second) {
    void *volatile words[KEPT];
    away_where = where;
    away_collects = 1;
    keep(&kept, "the main stack, from a context or outside of one", words, KEPT, 1, 19);
    make_context(0, first);
    make_context(1, second);
    first = second = NULL;
    for (int turn = 0; turn < 2; turn++)
        for (int number = 0; number < 2; number++) {
            swapcontext(&home, &away[number]);
            scrub_stack(SCRUB);
            check_kept(&kept);
            check_kept(&away_kept[0]);
            if (turn || number)
                check_kept(&away_kept[1]);
        }
    swapcontext(&home, &away[0]);
    check_gone(&away_kept[0], SPARED);
    swapcontext(&home, &away[1]);
    check_gone(&away_kept[1], SPARED);
    check_whole(&kept);
    clear(words, KEPT);
}

CASE(PLAIN, context_mapped, "contexts of makecontext on mapped stacks, each in a mapping of its own") {
    char *first = map(STACK_BYTES);
    /* The system joins adjacent mappings: a page that is not writable separates them. */
    char *between = map(STACK_BYTES);
    mprotect(between, STACK_BYTES, PROT_NONE);
    with_contexts("a context on a mapped stack", first, map(STACK_BYTES));
}

CASE(PLAIN, context_together, "contexts on stacks in one mapping: the lower is suspended while the upper runs") {
    char *area = map(2 * STACK_BYTES);
    with_contexts("a context on a shared mapping of stacks", area, area + STACK_BYTES);
}

CASE(PLAIN, context_block, "contexts on stacks that are blocks of malloc, held by the suspended context only") {
    with_contexts("a context on a stack in a block", malloc(STACK_BYTES), malloc(STACK_BYTES));
}

static void collects_above(void) {
    scrub_stack(SCRUB / 2);
    check_kept(&kept);
    swapcontext(&away[0], &home);
}

APART static void switches_from_below(void) {
    void *volatile words[KEPT];
    keep(&kept, "a frame below the array on which a context runs", words, KEPT, 0, 52);
    swapcontext(&home, &away[0]);
    check_whole(&kept);
    clear(words, KEPT);
}

CASE(PLAIN, context_automatic, "a context on an array of a frame: the frames that switch to it lie below") {
    char stack[STACK_BYTES];
    CHECK(getcontext(&away[0]) == 0, "getcontext");
    away[0].uc_stack.ss_sp = stack;
    away[0].uc_stack.ss_size = sizeof stack;
    makecontext(&away[0], collects_above, 0);
    switches_from_below();
    memset(stack, 0, sizeof stack);
    hidden_pointer(stack);
    scrub_stack(SCRUB);
    check_gone(&kept, SPARED);
}

static disguised lonely_stack;

static void lonely(void) {
    /* Only the stack pointer holds this stack now. */
    memset(&away[0], 0, sizeof away[0]);
    volatile uint64_t canary[64];
    for (size_t i = 0; i < 64; i++)
        canary[i] = i * 77;
    scrub_stack(SCRUB / 2);
    for (int i = 0; i < 3; i++) {
        collect();
        churn(5, 200);
    }
    CHECK(is_live(lonely_stack) != 0, "the running context's stack was reclaimed");
    for (size_t i = 0; i < 64; i++)
        CHECK(canary[i] == i * 77, "the running context's stack was overwritten");
    setcontext(&home);
}

CASE(PLAIN, context_lonely, "running on a stack in a block that only the stack pointer holds") {
    static int back;
    getcontext(&away[0]);
    char *stack = malloc(STACK_BYTES);
    lonely_stack = disguise(stack);
    away[0].uc_stack.ss_sp = stack;
    away[0].uc_stack.ss_size = STACK_BYTES;
    makecontext(&away[0], lonely, 0);
    stack = NULL;
    getcontext(&home);
    if (!back++)
        setcontext(&away[0]);
}

/* --- leaving frames -------------------------------------------------------------------------------------------- */

static jmp_buf again;

APART static void dive(int depth, void *volatile *outer) {
    void *volatile words[KEPT];
    for (int i = 0; i < KEPT; i++)
        words[i] = outer[i];
    if (depth == 0) {
        collect();
        check_whole(&kept);
        if (hidden(1))
            longjmp(again, 1);
        return;
    }
    dive(depth - 1, words);
    hidden_pointer((void *)words);
}

CASE(PLAIN, longjmp_frames, "blocks held by the frame that longjmp returns to are kept, those of frames it left are reclaimed") {
    static struct kept left;
    void *volatile words[KEPT];
    keep(&kept, "the frame of setjmp", words, KEPT, 0, 50);
    for (volatile int round = 0; round < 5; round++) {
        if (setjmp(again) == 0)
            dive(20 + round, words);
        scrub_stack(SCRUB);
        check_kept(&kept);
    }
    if (setjmp(again) == 0) {
        keep(&left, "frames that longjmp left", handed, KEPT, 0, 51);
        dive(3, handed);
    }
    clear(handed, KEPT);
    check_gone(&left, SPARED);
    clear(words, KEPT);
    check_gone(&kept, SPARED);
}

/* --- libraries ------------------------------------------------------------------------------------------------- */

typedef void *volatile *words_function(void);

static void *open_holder(const char *name, words_function **function) {
    void *library = dlopen("libholder.so", RTLD_NOW);
    CHECK(library, "%s", dlerror());
    void *symbol = dlsym(library, name);
    CHECK(symbol, "%s", dlerror());
    memcpy(function, &symbol, sizeof symbol);
    return library;
}

CASE(PLAIN, library_data, "pointers in the static data of an opened library; their blocks are reclaimed when it is closed") {
    words_function *words;
    for (int round = 0; round < 5; round++) {
        void *library = open_holder("holder_words", &words);
        keep(&kept, "a library's data", words(), KEPT, round % 2, 60);
        scrub_stack(SCRUB);
        check_kept(&kept);
        dlclose(library);
        check_gone(&kept, SPARED);
    }
}

static void *in_library_thread_data(void *argument) {
    words_function *words;
    void *library = open_holder("holder_thread_words", &words);
    keep(&kept, argument, words(), KEPT, 0, 61);
    park();
    clear(words(), KEPT);
    dlclose(library);
    return NULL;
}

CASE(PLAIN, library_thread_data, "pointers in the thread-local data of a library opened later") {
    check_parked(in_library_thread_data, "a library's thread-local data", NULL);
}

static int opening_done;

static void *opens(void *argument) {
    (void)argument;
    words_function *words;
    static struct kept own;
    for (size_t i = 0; i < effort(150, 50); i++) {
        void *library = open_holder("holder_words", &words);
        keep(&own, "a library that is opened and closed", words(), 8, 0, 70 + i);
        churn(i, 50);
        check_whole(&own);
        dlclose(library);
    }
    set_flag(&opening_done, 1);
    return NULL;
}

CASE(PLAIN, library_storm, "libraries are opened and closed while another thread collects") {
    pthread_t thread = start_thread(opens, NULL);
    size_t count = 0;
    while (!get_flag(&opening_done)) {
        collect();
        count++;
        if (!collects())
            wait_ms(1);
    }
    note("%zu collections", count);
    join_thread(thread);
}
