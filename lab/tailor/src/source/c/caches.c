/* ---- Each thread's own lists of free blocks, one a class: malloc takes the first, free puts one in front. Class 0,
 * the general heap, has a list that is always empty for malloc, and full for free. ---- */

static __thread void **lists[CLASSES] __attribute__((tls_model("initial-exec")));
/* How many more blocks may be freed before the list is looked at. */
static __thread int allowance[CLASSES] __attribute__((tls_model("initial-exec")));
static __thread bool known __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_end;
static bool has_thread_end;

/* A thread ends: its blocks are for others. Blocks freed by later destructors make it known again. */
static void thread_ends(void *unused) {
    (void)unused;
    lock();
    for (unsigned class = 1; class < CLASSES; class++) {
        if (lists[class])
            give_batch(class, lists[class]);
        lists[class] = NULL;
        allowance[class] = 0;
    }
    unlock();
    known = false;
}

/* Has `thread_ends` called at the end of this thread. */
static void know_thread(void) {
    if (known || one_thread())
        return;
    known = true;
    if (__atomic_load_n(&has_thread_end, __ATOMIC_ACQUIRE))
        pthread_setspecific(thread_end, &known);
}

__attribute__((constructor)) static void prepare(void) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    if (pthread_key_create(&thread_end, thread_ends) == 0)
        __atomic_store_n(&has_thread_end, true, __ATOMIC_RELEASE);
}

/* A block for an empty list, or of no class: the list is filled. */
static void *refill(unsigned class) {
    know_thread();
    lock();
    void **batch = start_heap() ? batch_of(class) : NULL;
    unlock();
    if (batch)
        lists[class] = *batch;
    return batch;
}

/* Keeps a list short where there are other threads: all but its first blocks are for them. */
static void shorten(unsigned class) {
    allowance[class] = kept_blocks[class];
    know_thread();
    if (one_thread())
        return;
    void **last = lists[class];
    for (int kept = 1; kept < kept_blocks[class] && *last; kept++)
        last = *last;
    void **rest = *last;
    if (!rest)
        return;
    *last = NULL;
    lock();
    give_batch(class, rest);
    unlock();
}
