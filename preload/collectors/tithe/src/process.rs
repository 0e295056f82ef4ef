//! Tithe as a process uses it: one heap, a cache for each thread, and the hooks of start, exit, threads and fork.
//!
//! Here are the fast ways of malloc and free: a table, the thread's list, and out.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use heaptoll_floor::{
    EventFunction, Manager, Message, RawCensus, ThreadEnd, fail_every, prepare_barriers, thread_word,
};
use heaptoll_roots::{DEFAULT_SIGNAL, World};

use crate::cache::{Cache, FreeBlock};
use crate::class::{CLASS, FAST, FAST_MAX, UNIT, UNIT_SHIFT};
use crate::collection::NotCollected;
use crate::heap::Heap;
use crate::log::Reason;
use crate::misuse::report;
use crate::settings::{Mode, Settings};

/// What a thread has that never allocated: every list is empty and has no room, so that the fast ways end there.
static EMPTY: Cache = Cache::empty();

/// What a thread has whose cache was taken back, as it ends. The C library frees after the last destructor, and a
/// cache that the thread got then would never be taken back; so it gets one for each call.
static GONE: Cache = Cache { thread: -1, ..Cache::empty() };

thread_word! {
    /// The thread's cache.
    CACHE: "heaptoll_tithe_cache" = EMPTY
}

/// The threads of the process.
static WORLD: World = World::new();

/// Kinds that have spans of one unit and are not pointer-free: what the fast ways serve.
const FAST_SPAN_CLASSES: u8 = FAST[FAST_MAX / 16];

/// The heap of this process.
pub struct Process {
    heap: Heap,
    thread_end: ThreadEnd,
    /// Another heap may have been preloaded, with a signal of its own.
    is_linked: bool,
}

/// The thread that the cache belonged to has ended, or is about to.
unsafe extern "C" fn on_thread_end(cache: *mut c_void) {
    let cache: *mut Cache = cache.cast();
    if CACHE::get() == cache as usize {
        CACHE::set(ptr::from_ref(&GONE) as usize);
    }
    // SAFETY: it was armed with the thread's cache, which nobody uses any more and which knows its heap.
    unsafe {
        (*(*cache).heap).end_thread();
        (*(*cache).heap).close_cache(cache);
    }
}

fn thread_id() -> i32 {
    // SAFETY: gettid has no conditions.
    unsafe { libc::gettid() }
}

impl Process {
    /// A process without memory yet.
    pub const fn new() -> Process {
        Process { heap: Heap::unconfigured(), thread_end: ThreadEnd::new(on_thread_end), is_linked: false }
    }

    /// As [`Process::new`], for a library that is linked and not malloc.
    pub const fn linked() -> Process {
        Process { heap: Heap::unconfigured(), thread_end: ThreadEnd::new(on_thread_end), is_linked: true }
    }

    /// The heap, for what is not malloc.
    pub const fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Does something with the calling thread's cache, made at its first call. `None` when there is no memory for one.
    #[inline(always)]
    fn with_cache<R>(&self, action: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        let mut cache = CACHE::get() as *mut Cache;
        let mut temporary = false;
        // SAFETY: the thread's cache, which knows its heap, or one of the two statics, which do not.
        if unsafe { (*cache).heap.is_null() } {
            (cache, temporary) = self.new_cache(cache)?;
        }
        // SAFETY: the cache is this thread's alone while it runs; the collector reads it while the thread stands still.
        let done = action(unsafe { &mut *cache });
        if temporary {
            // SAFETY: it was opened for this call.
            unsafe { self.heap.close_cache(cache) };
        }
        Some(done)
    }

    /// A cache for the calling thread, and whether it is for this call only.
    #[cold]
    #[inline(never)]
    fn new_cache(&self, former: *const Cache) -> Option<(*mut Cache, bool)> {
        let cache = self.heap.open_cache(thread_id())?;
        if ptr::eq(former, &GONE) {
            return Some((cache, true));
        }
        CACHE::set(cache as usize);
        // Arming may allocate, which the cache serves already. Before start there are no other threads to end.
        let _ = self.thread_end.arm(cache.cast());
        Some((cache, false))
    }

    #[cold]
    #[inline(never)]
    fn allocate_slow(&self, bytes: usize) -> *mut u8 {
        self.with_cache(|cache| self.heap.allocate(cache, bytes, false)).unwrap_or(ptr::null_mut())
    }

    /// A block without pointers.
    pub fn allocate_atomic(&self, bytes: usize) -> *mut u8 {
        self.with_cache(|cache| self.heap.allocate(cache, bytes, true)).unwrap_or(ptr::null_mut())
    }

    #[cold]
    #[inline(never)]
    fn free_slow(&self, block: *mut u8) {
        if block.is_null() || self.heap.is_mode(Mode::Collect) {
            return;
        }
        // SAFETY: the C caller's word.
        if let Some(Err(misuse)) = self.with_cache(|cache| unsafe { self.heap.free(cache, block) }) {
            report("free", block as usize, misuse);
        }
    }

    /// A block without pointers, in C's words: null and ENOMEM when there is no memory.
    pub fn malloc_atomic(&self, bytes: usize) -> *mut c_void {
        let block = self.allocate_atomic(bytes);
        if block.is_null() {
            self.failed();
            // SAFETY: errno's address is valid for the calling thread.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
        }
        block.cast()
    }

    /// `tithe_collect`: what the collection reclaims is free on return.
    pub fn collect_and_sweep(&self) -> c_int {
        let status = Manager::collect(self);
        if status == 0 {
            self.heap.sweep_all();
        }
        status
    }

    /// `tithe_register_thread`.
    pub fn register_thread(&self, low: usize, high: usize) -> c_int {
        // The thread's end is noticed by its cache.
        self.with_cache(|_| self.heap.register_thread(low, high)).unwrap_or(libc::ENOMEM)
    }

    /// A full collection.
    ///
    /// # Errors
    /// Why there was none.
    pub fn collect_now(&self) -> Result<(), NotCollected> {
        self.heap.collect(Reason::Called)
    }
}

impl Default for Process {
    fn default() -> Process {
        Process::new()
    }
}

impl Manager for Process {
    const NAME: &'static str = "tithe";

    #[inline(always)]
    fn allocate(&self, bytes: usize) -> *mut u8 {
        // With the byte behind the end a request of FAST_MAX bytes is beyond the table.
        if bytes < FAST_MAX {
            let step = (bytes + self.heap.rounding.load(Ordering::Relaxed)) >> 4;
            // SAFETY: at most 1023 + 16 bytes, 64 steps.
            let span_class = usize::from(unsafe { *FAST.get_unchecked(step) });
            let cache = CACHE::get() as *mut Cache;
            // SAFETY: the thread's cache, or the empty one, of which this reads only. Kinds in the table have lists.
            unsafe {
                let list = (*cache).lists.as_mut_ptr().add(span_class);
                let head = (*list).head;
                if !head.is_null() {
                    (*list).head = (*head).next;
                    (*list).free_slots += 1;
                    (*head).next = ptr::null_mut();
                    (*head).key = 0;
                    return head.cast();
                }
            }
        }
        self.allocate_slow(bytes)
    }

    fn allocate_zeroed(&self, bytes: usize) -> *mut u8 {
        self.with_cache(|cache| self.heap.allocate_zeroed(cache, bytes)).unwrap_or(ptr::null_mut())
    }

    fn allocate_aligned(&self, alignment: usize, bytes: usize) -> *mut u8 {
        self.with_cache(|cache| self.heap.allocate_aligned(cache, alignment, bytes))
            .unwrap_or(ptr::null_mut())
    }

    #[inline(always)]
    unsafe fn free(&self, block: *mut u8) {
        let reservation = &self.heap.reservation;
        let offset = (block as usize).wrapping_sub(reservation.base());
        let unit = offset >> UNIT_SHIFT;
        if unit < self.heap.fast_free_units.load(Ordering::Relaxed) {
            // SAFETY: the table has a row for every unit; the cache is the thread's, or the empty one, of which this
            // reads only; a block of such a kind is readable, and the caller gives it up.
            unsafe {
                let span_class = *reservation.span_classes().add(unit);
                if span_class.wrapping_sub(1) < FAST_SPAN_CLASSES {
                    let class = CLASS.get_unchecked(span_class as usize);
                    let within = offset & (UNIT - 1);
                    let block = block.cast::<FreeBlock>();
                    let cache = CACHE::get() as *mut Cache;
                    let list = (*cache).lists.as_mut_ptr().add(span_class as usize);
                    let key = self.heap.key.load(Ordering::Relaxed);
                    let index = class.index(within);
                    if index * class.size as usize == within
                        && index < class.blocks as usize
                        && (*list).free_slots != 0
                        && (*block).key != key
                    {
                        (*block).next = (*list).head;
                        (*block).key = key;
                        core::sync::atomic::compiler_fence(Ordering::SeqCst);
                        (*list).head = block;
                        (*list).free_slots -= 1;
                        return;
                    }
                }
            }
        }
        self.free_slow(block);
    }

    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize) -> *mut u8 {
        // SAFETY: the C caller's word.
        match self.with_cache(|cache| unsafe { self.heap.reallocate(cache, block, bytes) }) {
            Some(Ok(new)) => new,
            Some(Err(misuse)) => {
                report("realloc", block.as_ptr() as usize, misuse);
                ptr::null_mut()
            }
            None => ptr::null_mut(),
        }
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        self.heap.usable_by_program(block.as_ptr())
    }

    fn failed(&self) {
        self.heap.reporter.failed();
    }

    unsafe fn census(&self, census: &mut RawCensus) -> c_int {
        // SAFETY: the caller's word.
        unsafe { self.heap.census(census, is_alone()) };
        0
    }

    fn check(&self) -> c_int {
        self.heap.check_and_report()
    }

    fn collect(&self) -> c_int {
        match self.collect_now() {
            Ok(()) => 0,
            Err(NotCollected::Mode) => libc::ENOTSUP,
            Err(NotCollected::Abandoned) => libc::EAGAIN,
        }
    }

    fn listen(&self, function: Option<EventFunction>, context: *mut c_void) -> c_int {
        let _collection = self.heap.collection.lock();
        let _units = self.heap.units.lock();
        self.heap.reporter.listen(function, context)
    }

    fn start(&'static self) {
        prepare_barriers();
        let settings = match Settings::from_environment() {
            Ok(settings) => settings,
            Err(wrong) => {
                wrong.message().write();
                // SAFETY: nothing has been started; the program has not run.
                unsafe { libc::_exit(2) }
            }
        };
        if self.thread_end.prepare().is_err() {
            Message::new().text("tithe: no key for the ends of threads is left (PTHREAD_KEYS_MAX)").abort();
        }
        let signal = settings.signal.unwrap_or(DEFAULT_SIGNAL);
        let signal = if self.is_linked && is_handled(signal) {
            libc::SIGRTMAX() - LINKED_SIGNAL_OFFSET
        } else {
            signal
        };
        WORLD.start(Some(signal), settings.patience_ms);
        let cache = CACHE::get();
        if cache != ptr::from_ref(&EMPTY) as usize {
            // The main thread's: its end is rarely the process's.
            let _ = self.thread_end.arm(cache as *mut c_void);
        }
        self.heap.units.lock().memory.fail_every = fail_every();
        self.heap.configure(&settings, Some(&WORLD));
    }

    fn finish(&self) {}

    fn before_fork(&self) {
        self.heap.before_fork();
    }

    fn after_fork(&self) {
        self.heap.after_fork();
    }

    fn after_fork_in_child(&self) {
        WORLD.after_fork_in_child();
        // SAFETY: the thread's own.
        unsafe { self.heap.after_fork_in_child(CACHE::get() as *mut Cache) };
        self.heap.forget_other_threads();
    }
}

/// How far below the highest signal the one lies that a linked heap takes where another heap has taken its own: with
/// one signal for both, each would hand on to the other what is neither's, for ever.
pub(crate) const LINKED_SIGNAL_OFFSET: c_int = 7;

/// Whether somebody handles the signal. glibc's own function refuses to tell of the signals that glibc uses.
fn is_handled(signal: c_int) -> bool {
    let mut action = [0_usize; 4];
    // SAFETY: the place is as long as the kernel's structure, which begins with the handler; nothing is changed.
    let status = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            ptr::null::<c_void>(),
            action.as_mut_ptr(),
            size_of::<u64>(),
        )
    };
    status == 0 && action[0] != libc::SIG_DFL && action[0] != libc::SIG_IGN
}

/// Whether there is one thread, as far as the C library knows.
fn is_alone() -> bool {
    unsafe extern "C" {
        static __libc_single_threaded: core::ffi::c_char;
    }
    // SAFETY: glibc's variable, a byte that it writes when threads come.
    unsafe { ptr::read_volatile(&raw const __libc_single_threaded) != 0 }
}

const _: () = assert!(DEFAULT_SIGNAL != 0);
