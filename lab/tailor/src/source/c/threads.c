/* ---- One lock for all but the threads' own lists. A process of one thread does not take it. Over a fork the forking
 * thread holds it, and may allocate meanwhile in other handlers. ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t forking; /* the thread that holds the lock over its fork, 0 for none */
static unsigned forks;    /* in how many forks it is */

extern char __libc_single_threaded __attribute__((weak));
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));

static inline bool one_thread(void) { return &__libc_single_threaded && __libc_single_threaded; }
static inline bool is_forking(void) { return forks && pthread_equal(forking, pthread_self()); }

static inline void lock(void) {
    if (!one_thread() && !is_forking())
        pthread_mutex_lock(&mutex);
}

static inline void unlock(void) {
    if (!one_thread() && !is_forking())
        pthread_mutex_unlock(&mutex);
}

/* The list of open streams is locked first: fork takes it after these handlers, and a thread that holds a stream may
 * wait for the heap. */
static void before_fork(void) {
    if (!is_forking()) {
        if (one_thread())
            return;
        if (_IO_list_lock)
            _IO_list_lock();
        pthread_mutex_lock(&mutex);
        forking = pthread_self();
    }
    forks++;
}

static void after_fork(void) {
    if (!is_forking() || --forks)
        return;
    forking = 0;
    pthread_mutex_unlock(&mutex);
    if (_IO_list_unlock)
        _IO_list_unlock();
}

static void after_fork_in_child(void) {
    if (!is_forking())
        return;
    forks = 0;
    forking = 0;
    pthread_mutex_init(&mutex, NULL);
    if (_IO_list_resetlock)
        _IO_list_resetlock();
}
