//! A heap as a process uses it: the manager that is one heap and one lock.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use heaptoll_assertions::assert_internal;

use crate::contract::{EventFunction, RawCensus, RawClass};
use crate::fault::fail_every;
use crate::lock::prepare_barriers;
use crate::{ALIGNMENT, Guard, Heap, LARGEST, Lock, Manager, Message, Misuse, StatsReporter, tally};

/// A debug build checks the whole heap after every this many calls.
#[cfg(debug_assertions)]
const CHECK_EVERY: u64 = 4096;

/// A heap as a process uses it.
pub struct Shell<H: Heap> {
    heap: Lock<H>,
    reporter: StatsReporter,
    #[cfg(debug_assertions)]
    calls: core::sync::atomic::AtomicU64,
}

impl<H: Heap> Shell<H> {
    /// A shell around a fresh heap.
    pub const fn new(heap: H) -> Shell<H> {
        Shell {
            heap: Lock::new(heap),
            reporter: StatsReporter::new(H::NAME),
            #[cfg(debug_assertions)]
            calls: core::sync::atomic::AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn heap(&self) -> Guard<'_, H> {
        let heap = self.heap.lock();
        #[cfg(debug_assertions)]
        if self.calls.fetch_add(1, core::sync::atomic::Ordering::Relaxed).is_multiple_of(CHECK_EVERY)
            && let Err(damage) = heap.check()
        {
            damage.message(H::NAME).abort();
        }
        heap
    }

    #[cold]
    #[inline(never)]
    fn misused(call: &str, block: NonNull<u8>, misuse: Misuse) -> ! {
        let line = Message::new().text(H::NAME).text(": ").text(call).text("(");
        line.address(block.as_ptr() as usize).text("): ").text(misuse.text()).abort()
    }
}

impl<H: Heap> Manager for Shell<H> {
    const NAME: &'static str = H::NAME;

    #[inline(always)]
    fn allocate(&self, bytes: usize) -> *mut u8 {
        if bytes > LARGEST {
            return ptr::null_mut();
        }
        let block = self.heap().allocate(bytes);
        assert_internal!(
            block.is_none_or(|block| (block.as_ptr() as usize).is_multiple_of(ALIGNMENT)),
            "every block is aligned"
        );
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    fn allocate_pointer_free(&self, bytes: usize) -> *mut u8 {
        if bytes > LARGEST {
            return ptr::null_mut();
        }
        self.heap().allocate_pointer_free(bytes).map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline(always)]
    fn allocate_zeroed(&self, bytes: usize) -> *mut u8 {
        let block = self.allocate(bytes);
        if !H::CLEARS && !block.is_null() {
            // SAFETY: `allocate` returned a block of at least `bytes` bytes, which only this thread has.
            unsafe { ptr::write_bytes(block, 0, bytes) };
        }
        block
    }

    fn allocate_aligned(&self, alignment: usize, bytes: usize) -> *mut u8 {
        let block = self.heap().allocate_aligned(alignment, bytes);
        assert_internal!(
            block.is_none_or(|block| (block.as_ptr() as usize).is_multiple_of(alignment)),
            "an aligned block is aligned as requested"
        );
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline(always)]
    unsafe fn free(&self, block: *mut u8) {
        let Some(block) = NonNull::new(block) else { return };
        // SAFETY: `block` is a live block, which C requires of the caller of `free`.
        let freed = unsafe { self.heap().free(block) };
        if let Err(misuse) = freed {
            Self::misused("free", block, misuse);
        }
    }

    unsafe fn reallocate(&self, old: NonNull<u8>, bytes: usize) -> *mut u8 {
        let mut heap = self.heap();
        // SAFETY: `old` is a live block, which C requires of the caller of `realloc`.
        match unsafe { heap.resize(old, bytes) } {
            Ok(true) => {
                assert_internal!(
                    // SAFETY: `old` is a live block, or `resize` would have returned an error.
                    unsafe { heap.usable(old) } >= bytes,
                    "a block that is resized in place is large enough"
                );
                return old.as_ptr();
            }
            Ok(false) => {}
            Err(misuse) => Self::misused("realloc", old, misuse),
        }
        let Some(new) = heap.allocate(bytes) else { return ptr::null_mut() };
        // SAFETY: `old` is a live block, or `resize` would have returned an error.
        let kept = unsafe { heap.usable(old) }.min(bytes);
        assert_internal!(new != old, "a block that is copied is another one");
        assert_internal!(
            // SAFETY: `allocate` has just returned `new`.
            unsafe { heap.usable(new) } >= kept,
            "the contents of a block fit the one that replaces it"
        );
        // The copy is made without the lock: both blocks are the caller's.
        drop(heap);
        // SAFETY: `allocate` returned `new` while `old` was live, so they are apart; both have at least `kept` bytes.
        unsafe { ptr::copy_nonoverlapping(old.as_ptr(), new.as_ptr(), kept) };
        // SAFETY: `old` is live, which C requires of the caller of `realloc`, and is not used after this.
        let discarded = unsafe { self.heap().discard(old) };
        if let Err(misuse) = discarded {
            Self::misused("realloc", old, misuse);
        }
        new.as_ptr()
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        // SAFETY: `block` is live, as this function requires.
        unsafe { self.heap().usable(block) }
    }

    fn failed(&self) {
        self.reporter.failed();
    }

    unsafe fn census(&self, census: &mut RawCensus) -> c_int {
        let tally = tally(&*self.heap());
        census.class_count = 0;
        census.exact = 1;
        census.mapped_bytes = tally.mapped;
        census.mapped_high_bytes = tally.mapped;
        census.live_bytes = tally.live;
        census.free_bytes = tally.free;
        census.metadata_bytes = tally.metadata;
        census.quarantined_bytes = 0;
        census.unused_bytes = tally.unused;
        census.requested_bytes = u64::MAX;
        for range in tally.filled() {
            let class = RawClass {
                block_bytes: range.largest as u64,
                live_blocks: range.live_blocks,
                live_bytes: range.live_bytes,
                free_blocks: range.free_blocks,
                free_bytes: range.free_bytes,
                ..RawClass::default()
            };
            // SAFETY: the census has the array that `include/heaptoll.h` requires of the caller.
            unsafe { census.push(class) };
        }
        0
    }

    fn check(&self) -> c_int {
        let checked = self.heap().check();
        match checked {
            Ok(()) => 0,
            Err(damage) => {
                damage.message(H::NAME).write();
                libc::EINVAL
            }
        }
    }

    fn collect(&self) -> c_int {
        self.heap().collect()
    }

    fn listen(&self, function: Option<EventFunction>, context: *mut c_void) -> c_int {
        // The heap reports events under its lock.
        let heap = self.heap();
        let status = self.reporter.listen(function, context);
        drop(heap);
        status
    }

    fn start(&'static self) {
        let every = fail_every();
        prepare_barriers();
        let mut heap = self.heap();
        heap.region_mut().fail_every(every);
        heap.start(&self.reporter);
        self.reporter.mapped(heap.region().mapped_bytes());
    }

    /// Reports what changes too often to be reported at once. A signal handler may have called exit in the middle of
    /// malloc: then nothing is reported.
    fn finish(&self) {
        let Some(heap) = self.heap.try_lock() else { return };
        let search = heap.search();
        drop(heap);
        if let Some(search) = search {
            self.reporter.searched(search);
        }
    }

    fn before_fork(&self) {
        self.heap.before_fork();
    }

    fn after_fork(&self) {
        self.heap.after_fork();
    }

    fn after_fork_in_child(&self) {
        self.heap.after_fork_in_child();
        self.reporter.after_fork_in_child();
        // A fork in the middle of a call leaves the heap to that call.
        if let Some(mut heap) = self.heap.try_lock() {
            heap.after_fork_in_child();
        }
    }
}
