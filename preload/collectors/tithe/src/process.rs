//! Tithe as a process uses it: one heap, a cache for each thread, and the hooks of start, exit, threads and fork.
//!
//! The fast paths of malloc and free are here: a table look-up, and a pop or push of the thread's list, or a step of its
//! cursor.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use heaptoll_assertions::assert_internal;
use heaptoll_marking::cores;
use heaptoll_roots::World;
use heaptoll_runtime::{
    EventFunction, Manager, Message, Misuse, RawCensus, ThreadEnd, fail_every, prepare_barriers,
    single_threaded, thread_word,
};

use crate::block_test::BLOCK_TESTS;
use crate::bump::Bump;
use crate::cache::{Cache, FreeBlock, List};
use crate::class::{CLASS, CLASSES, FAST, FAST_MAX, UNIT, UNIT_SHIFT, is_small};
use crate::heap::Heap;
use crate::log::Reason;
use crate::misuse::report;
use crate::mode::Mode;
use crate::progress::NotCollected;
use crate::settings::Settings;
use crate::signal::stopping_signal;

/// The cache of a thread that has never allocated: every list is empty and accepts no block, so that the fast paths
/// fail on it.
static EMPTY: Cache = Cache::empty();

/// The cache of a thread that is ending and whose own was closed. The C library frees after the last destructor, and a
/// cache opened then would never be closed; so the thread gets one for each call.
static GONE: Cache = Cache { thread: -1, ..Cache::empty() };

thread_word! {
    /// The thread's cache.
    CACHE: "heaptoll_tithe_cache" = EMPTY
}

/// The threads of the process.
static WORLD: World = World::new();

/// The heap of this process, a static.
pub struct Process {
    heap: Heap,
    thread_end: ThreadEnd,
    /// The heap is linked into the program: another heap may have been preloaded, with a signal of its own.
    is_linked: bool,
}

/// The thread ends: closes its cache.
///
/// # Safety
/// `process` is a [`Process`] that lives as long as the threads that armed this with it.
unsafe extern "C" fn on_thread_end(process: *mut c_void) {
    // SAFETY: this function's contract.
    let heap = unsafe { &(*process.cast::<Process>()).heap };
    let cache = CACHE::get() as *mut Cache;
    // SAFETY: the word holds the thread's cache, or one of the two statics; the ending thread no longer uses it.
    unsafe {
        if (*cache).has_thread() {
            CACHE::set(ptr::from_ref(&GONE) as usize);
            heap.end_thread();
            heap.close_cache(cache);
        }
    }
}

fn thread_id() -> i32 {
    // SAFETY: gettid takes no pointers and cannot fail.
    unsafe { libc::gettid() }
}

impl Process {
    /// A process without memory yet.
    ///
    /// # Safety
    /// It is the value of a static: threads find it by its address when they end.
    pub const unsafe fn new() -> Process {
        Process { heap: Heap::unconfigured(), thread_end: ThreadEnd::new(on_thread_end), is_linked: false }
    }

    /// As [`Process::new`], for a library that is linked and does not replace malloc.
    ///
    /// # Safety
    /// As [`Process::new`].
    pub const unsafe fn linked() -> Process {
        Process { heap: Heap::unconfigured(), thread_end: ThreadEnd::new(on_thread_end), is_linked: true }
    }

    /// The heap, for calls that are not of the malloc family.
    pub const fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Runs an action on the calling thread's cache, which is opened at the thread's first call. `None` when there is
    /// no memory for one.
    #[inline(always)]
    fn with_cache<R>(&self, action: impl FnOnce(&mut Cache) -> R) -> Option<R> {
        let mut cache = CACHE::get() as *mut Cache;
        let mut temporary = false;
        // SAFETY: the word holds the thread's cache, or one of the two statics, which have no thread.
        if unsafe { !(*cache).has_thread() } {
            (cache, temporary) = self.new_cache(cache)?;
        }
        // SAFETY: the thread's cache, as above, or the one that was just opened.
        assert_internal!(unsafe { (*cache).has_thread() }, "only a cache of a thread is changed");
        // SAFETY: only this thread uses the cache while it runs; the collector reads it while the thread is stopped.
        let done = action(unsafe { &mut *cache });
        if temporary {
            // SAFETY: the cache was opened for this call, which no longer uses it.
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
        let _ = self.arm();
        Some((cache, false))
    }

    /// Arms the hook at the calling thread's end. False when it cannot be armed.
    fn arm(&self) -> bool {
        self.thread_end.arm(ptr::from_ref(self).cast_mut().cast())
    }

    /// The span class of a request, from `FIRST` on, if the fast path serves it.
    #[inline(always)]
    fn fast_class<const FIRST: usize>(&self, bytes: usize) -> Option<usize> {
        // With the byte after its end a request of FAST_MAX bytes is beyond the table.
        if bytes >= FAST_MAX {
            return None;
        }
        let step = (bytes + self.heap.rounding.load(Ordering::Relaxed)) >> 4;
        assert_internal!(step < FAST.len(), "a request that takes the fast path has a row in the table");
        // SAFETY: `bytes` is below FAST_MAX and `rounding` at most 16, so `step` is at most 64, the last row.
        Some(usize::from(unsafe { *FAST.get_unchecked(step) }) + FIRST)
    }

    /// A block, of span classes from `FIRST` on: 0, or `CLASSES` for the pointer-free ones. Null when there is no memory.
    #[inline(always)]
    fn allocate_from<const FIRST: usize>(&self, bytes: usize) -> *mut u8 {
        if let Some(span_class) = self.fast_class::<FIRST>(bytes) {
            let cache = CACHE::get() as *mut Cache;
            let row = span_class * size_of::<List>();
            // SAFETY: the word holds the thread's cache, or a static empty one, which is only read. Every span class in
            // the table has a list, and a cursor of the same size, whose blocks are free.
            let block = unsafe {
                let block = List::pop((*cache).lists.as_mut_ptr().byte_add(row)).cast::<u8>();
                if block.is_null() { Bump::take((*cache).bumps.as_mut_ptr().byte_add(row)) } else { block }
            };
            if !block.is_null() {
                assert_internal!(
                    self.heap.is_block_of(block as usize, span_class as u8),
                    "blocks in a cache are of their span class"
                );
                return block;
            }
        }
        self.allocate_next::<FIRST>(bytes)
    }

    /// As [`Process::allocate_from`], when the cache has no block in its list or next to the last one.
    #[cold]
    #[inline(never)]
    fn allocate_next<const FIRST: usize>(&self, bytes: usize) -> *mut u8 {
        if let Some(span_class) = self.fast_class::<FIRST>(bytes) {
            // SAFETY: the word holds the thread's cache, or a static empty one, which has no reserved block and is only
            // read.
            let block = unsafe { Cache::take_next(CACHE::get() as *mut Cache, span_class) };
            if !block.is_null() {
                return block;
            }
        }
        self.allocate_slow::<FIRST>(bytes)
    }

    #[cold]
    #[inline(never)]
    fn allocate_slow<const FIRST: usize>(&self, bytes: usize) -> *mut u8 {
        self.with_cache(|cache| self.heap.allocate(cache, bytes, FIRST != 0)).unwrap_or(ptr::null_mut())
    }

    #[cold]
    #[inline(never)]
    fn free_slow(&self, block: *mut u8) {
        if block.is_null() {
            return;
        }
        // SAFETY: the program does not use the block after free (the contract of `Manager::free`).
        if let Some(Err(misuse)) = self.with_cache(|cache| unsafe { self.heap.free(cache, block) }) {
            self.report("free", block as usize, misuse);
        }
    }

    /// As [`Process::free_slow`], where small blocks of mode `guard` need no more than the thread's cache.
    #[inline(never)]
    fn free_guarded(&self, block: *mut u8) {
        let cache = CACHE::get() as *mut Cache;
        // SAFETY: the word holds the thread's cache, or one of the two statics, which have no thread.
        let has_thread = unsafe { (*cache).has_thread() };
        let unit = self.heap.reservation.unit_of(block as usize).filter(|_| has_thread);
        let Some(unit) = unit.filter(|&unit| is_small(self.heap.reservation.span_class(unit))) else {
            return self.free_slow(block);
        };
        let span_class = self.heap.reservation.span_class(unit);
        // SAFETY: only this thread uses its cache while it runs; the program does not use the block after free (the contract of
        // `Manager::free`).
        let held = unsafe { self.heap.hold_small(&mut *cache, unit, span_class, block as usize) };
        if let Err(misuse) = held {
            self.report("free", block as usize, misuse);
        }
    }

    #[cold]
    fn report(&self, call: &str, address: usize, misuse: Misuse) {
        if misuse == Misuse::DoubleFree {
            self.heap.double_frees.fetch_add(1, Ordering::Relaxed);
        }
        report(call, address, misuse);
    }

    /// Allocates a pointer-free block for a C caller: null and ENOMEM when there is no memory.
    pub fn malloc_atomic(&self, bytes: usize) -> *mut c_void {
        let block = self.allocate_slow::<CLASSES>(bytes);
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
        // Opening the cache arms the destructor that runs at the thread's end.
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

impl Manager for Process {
    const NAME: &'static str = "tithe";

    fn allocate_pointer_free(&self, bytes: usize) -> *mut u8 {
        self.allocate_from::<CLASSES>(bytes)
    }

    #[inline(always)]
    fn allocate(&self, bytes: usize) -> *mut u8 {
        self.allocate_from::<0>(bytes)
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
            // SAFETY: the table has a row for every unit below `fast_free_units`, and that of tests one for anything that it
            // may hold, of the same size as a list, which a cache has for each of its classes; the cache is the thread's, or a
            // static empty one, which is only read; a block of such a span class is readable, and the caller no longer
            // uses it.
            unsafe {
                let span_class = usize::from(*reservation.span_classes().add(unit));
                let row = span_class * size_of::<List>();
                if (*BLOCK_TESTS.as_ptr().byte_add(row)).accepts(offset & (UNIT - 1)) {
                    let block = block.cast::<FreeBlock>();
                    let cache = CACHE::get() as *mut Cache;
                    let list = (*cache).lists.as_mut_ptr().byte_add(row);
                    let key = self.heap.key.load(Ordering::Relaxed);
                    assert_internal!(
                        CLASS[span_class].units == 1,
                        "the fast path of free serves spans of one unit"
                    );
                    if (*list).free_slots != 0 && (*block).key != key {
                        assert_internal!((*cache).has_thread(), "only a cache of a thread is changed");
                        List::push(list, block, key);
                        return;
                    }
                }
            }
        }
        if self.heap.is_mode(Mode::Guard) {
            self.free_guarded(block);
        } else if !self.heap.is_mode(Mode::Collect) {
            self.free_slow(block);
        }
    }

    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize) -> *mut u8 {
        // SAFETY: the program uses only the returned block after realloc (the contract of `Manager::reallocate`).
        match self.with_cache(|cache| unsafe { self.heap.reallocate(cache, block, bytes) }) {
            Some(Ok(new)) => new,
            Some(Err(misuse)) => {
                self.report("realloc", block.as_ptr() as usize, misuse);
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
        // SAFETY: `census.classes` has its capacity (the contract of `Manager::census`).
        unsafe { self.heap.census(census, single_threaded()) };
        0
    }

    fn check(&self) -> c_int {
        let Err(damage) = self.heap.check() else { return 0 };
        damage.message(Self::NAME).write();
        libc::EINVAL
    }

    fn collect(&self) -> c_int {
        match self.collect_now() {
            Ok(()) => 0,
            Err(NotCollected::Mode) => libc::ENOTSUP,
            Err(NotCollected::Abandoned) => libc::EAGAIN,
        }
    }

    fn listen(&self, function: Option<EventFunction>, context: *mut c_void) -> c_int {
        let _collector = self.heap.collector.lock();
        let _units = self.heap.units.lock();
        self.heap.reporter.listen(function, context)
    }

    fn start(&'static self) {
        prepare_barriers();
        let settings = match Settings::from_environment() {
            Ok(settings) => settings,
            Err(wrong) => {
                wrong.message().write();
                // SAFETY: _exit takes no pointers; the program has not run yet and needs no clean-up.
                unsafe { libc::_exit(2) }
            }
        };
        if self.thread_end.prepare().is_err() {
            Message::new().text("tithe: no key for the ends of threads is left (PTHREAD_KEYS_MAX)").abort();
        }
        let signal = stopping_signal(settings.signal, self.is_linked);
        WORLD.start(Some(signal), settings.patience_ms, cores());
        let cache = CACHE::get();
        if cache != ptr::from_ref(&EMPTY) as usize {
            // The main thread's cache: that thread may end before the process.
            let _ = self.arm();
        }
        self.heap.units.lock().memory.fail_every = fail_every();
        self.heap.configure(&settings, Some(&WORLD));
    }

    fn finish(&self) {
        self.heap.report_at_end();
    }

    fn before_fork(&self) {
        self.heap.before_fork();
    }

    fn after_fork(&self) {
        self.heap.after_fork();
    }

    fn after_fork_in_child(&self) {
        WORLD.after_fork_in_child();
        // SAFETY: the word holds the calling thread's cache, or a static one, which is never in the list of caches.
        unsafe { self.heap.after_fork_in_child(CACHE::get() as *mut Cache) };
        self.heap.forget_other_threads();
    }
}

// What the fast path of malloc assumes: a request with the byte after its end is within its table.
const _: () = {
    assert!((FAST_MAX - 1 + 16) >> 4 == FAST.len() - 1);
    assert!(size_of::<List>() == size_of::<Bump>());
};
