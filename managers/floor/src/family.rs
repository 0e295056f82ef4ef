//! The malloc family over a heap: the lock, the C standard's corner cases, `errno`, and what is told to the tool.
//!
//! Where the standard leaves a choice, it is glibc's, which programs on Linux were tested with: `realloc(p, 0)` frees
//! and returns null, `malloc(0)` gives a block.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};

use heaptoll_statspage::{Kind, Writer};

use crate::contract::{EventFunction, HEAP_GROWN, RawCensus, RawClass, RawEvent};
use crate::lock::prepare_barriers;
use crate::{ALIGNMENT, Damage, Guard, Heap, Lock, Message, Misuse, PAGE, WORD, round_up, tally};

/// The largest request, bytes: differences of pointers into a block must fit `ptrdiff_t`.
const LARGEST: usize = isize::MAX as usize;

/// A debug build checks the whole heap after every so many calls.
#[cfg(debug_assertions)]
const CHECK_EVERY: u64 = 4096;

/// A heap as a process uses it.
pub struct Shell<H: Heap> {
    heap: Lock<H>,
    writer: Writer,
    listener: AtomicPtr<c_void>,
    context: AtomicPtr<c_void>,
    #[cfg(debug_assertions)]
    calls: core::sync::atomic::AtomicU64,
}

#[cold]
fn set_errno(value: c_int) {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = value };
}

impl<H: Heap> Shell<H> {
    /// A shell around a fresh heap.
    pub const fn new(heap: H) -> Shell<H> {
        Shell {
            heap: Lock::new(heap),
            writer: Writer::new(Kind::Manager, H::NAME),
            listener: AtomicPtr::new(ptr::null_mut()),
            context: AtomicPtr::new(ptr::null_mut()),
            #[cfg(debug_assertions)]
            calls: core::sync::atomic::AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn heap(&self) -> Guard<'_, H> {
        let heap = self.heap.lock();
        #[cfg(debug_assertions)]
        if self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECK_EVERY)
            && let Err(damage) = heap.check()
        {
            Self::describe(damage).abort();
        }
        heap
    }

    fn describe(damage: Damage) -> Message {
        let line = Message::new().text(H::NAME).text(": the heap is damaged at ").address(damage.address);
        line.text(": this does not hold: ").text(damage.invariant)
    }

    #[cold]
    #[inline(never)]
    fn misused(call: &str, block: NonNull<u8>, misuse: Misuse) -> ! {
        let line = Message::new().text(H::NAME).text(": ").text(call).text("(");
        line.address(block.as_ptr() as usize).text("): ").text(misuse.text()).abort()
    }

    #[cold]
    #[inline(never)]
    fn failed(&self, error: c_int) -> *mut c_void {
        if error == libc::ENOMEM {
            self.writer.slot().failed_calls.fetch_add(1, Ordering::Relaxed);
        }
        set_errno(error);
        ptr::null_mut()
    }

    /// `malloc`.
    #[inline(always)]
    pub fn malloc(&self, bytes: usize) -> *mut c_void {
        if bytes > LARGEST {
            return self.failed(libc::ENOMEM);
        }
        let block = self.heap().allocate(bytes);
        match block {
            Some(block) => block.as_ptr().cast(),
            None => self.failed(libc::ENOMEM),
        }
    }

    /// `free`.
    ///
    /// # Safety
    /// As C's.
    #[inline(always)]
    pub unsafe fn free(&self, block: *mut c_void) {
        let Some(block) = NonNull::new(block.cast::<u8>()) else { return };
        // SAFETY: the caller's word.
        let freed = unsafe { self.heap().free(block) };
        if let Err(misuse) = freed {
            Self::misused("free", block, misuse);
        }
    }

    /// `calloc`.
    pub fn calloc(&self, count: usize, bytes: usize) -> *mut c_void {
        let Some(bytes) = count.checked_mul(bytes) else { return self.failed(libc::ENOMEM) };
        let block = self.malloc(bytes);
        if !block.is_null() {
            // SAFETY: the block has at least that many bytes.
            unsafe { ptr::write_bytes(block.cast::<u8>(), 0, bytes) };
        }
        block
    }

    /// `realloc`.
    ///
    /// # Safety
    /// As C's.
    pub unsafe fn realloc(&self, block: *mut c_void, bytes: usize) -> *mut c_void {
        let Some(old) = NonNull::new(block.cast::<u8>()) else { return self.malloc(bytes) };
        if bytes == 0 {
            // SAFETY: the caller's word.
            unsafe { self.free(block) };
            return ptr::null_mut();
        }
        if bytes > LARGEST {
            return self.failed(libc::ENOMEM);
        }
        let mut heap = self.heap();
        // SAFETY: the caller's word.
        match unsafe { heap.resize(old, bytes) } {
            Ok(true) => return block,
            Ok(false) => {}
            Err(misuse) => Self::misused("realloc", old, misuse),
        }
        let Some(new) = heap.allocate(bytes) else {
            drop(heap);
            return self.failed(libc::ENOMEM);
        };
        // SAFETY: `old` is a live block, or `resize` would have said so.
        let kept = unsafe { heap.usable(old) }.min(bytes);
        // The copy is made without the lock: both blocks are the caller's.
        drop(heap);
        // SAFETY: both are live, apart, and at least that long; `old` is given back once.
        unsafe {
            ptr::copy_nonoverlapping(old.as_ptr(), new.as_ptr(), kept);
            self.free(block);
        }
        new.as_ptr().cast()
    }

    /// `reallocarray`.
    ///
    /// # Safety
    /// As C's.
    pub unsafe fn reallocarray(&self, block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
        match count.checked_mul(bytes) {
            // SAFETY: the caller's word.
            Some(bytes) => unsafe { self.realloc(block, bytes) },
            None => self.failed(libc::ENOMEM),
        }
    }

    /// `memalign` and `aligned_alloc`: the alignment is a power of two, or EINVAL.
    pub fn memalign(&self, alignment: usize, bytes: usize) -> *mut c_void {
        if !alignment.is_power_of_two() {
            return self.failed(libc::EINVAL);
        }
        if alignment <= ALIGNMENT {
            return self.malloc(bytes);
        }
        if bytes.checked_add(alignment).is_none_or(|sum| sum > LARGEST) {
            return self.failed(libc::ENOMEM);
        }
        let block = self.heap().allocate_aligned(alignment, bytes);
        match block {
            Some(block) => block.as_ptr().cast(),
            None => self.failed(libc::ENOMEM),
        }
    }

    /// `posix_memalign`: keeps `errno`, and `*place` when it fails.
    ///
    /// # Safety
    /// As POSIX's.
    pub unsafe fn posix_memalign(&self, place: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int {
        if !alignment.is_power_of_two() || !alignment.is_multiple_of(WORD) {
            return libc::EINVAL;
        }
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        let block = self.memalign(alignment, bytes);
        set_errno(errno);
        if block.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: the caller's word.
        unsafe { *place = block };
        0
    }

    /// `valloc`.
    pub fn valloc(&self, bytes: usize) -> *mut c_void {
        self.memalign(PAGE, bytes)
    }

    /// `pvalloc`: whole pages.
    pub fn pvalloc(&self, bytes: usize) -> *mut c_void {
        if bytes > LARGEST - PAGE {
            return self.failed(libc::ENOMEM);
        }
        self.memalign(PAGE, round_up(bytes, PAGE))
    }

    /// `malloc_usable_size`.
    ///
    /// # Safety
    /// As glibc's.
    pub unsafe fn malloc_usable_size(&self, block: *mut c_void) -> usize {
        match NonNull::new(block.cast::<u8>()) {
            // SAFETY: the caller's word.
            Some(block) => unsafe { self.heap().usable(block) },
            None => 0,
        }
    }

    /// The control contract's `census`.
    ///
    /// # Safety
    /// `census` is null or as `include/heaptoll.h` wants it.
    pub unsafe fn census(&self, census: *mut RawCensus) -> c_int {
        // SAFETY: the caller's word.
        let Some(census) = (unsafe { census.as_mut() }) else { return libc::EINVAL };
        if (census.size as usize) < size_of::<RawCensus>() {
            return libc::EINVAL;
        }
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
            if census.class_count < census.class_capacity && !census.classes.is_null() {
                let class = RawClass {
                    block_bytes: range.largest as u64,
                    live_blocks: range.live_blocks,
                    live_bytes: range.live_bytes,
                    free_blocks: range.free_blocks,
                    free_bytes: range.free_bytes,
                    ..RawClass::default()
                };
                // SAFETY: the caller has room for `class_capacity` of them.
                unsafe { census.classes.add(census.class_count as usize).write(class) };
            }
            census.class_count += 1;
        }
        0
    }

    /// The control contract's `check`.
    pub fn check(&self) -> c_int {
        let checked = self.heap().check();
        match checked {
            Ok(()) => 0,
            Err(damage) => {
                Self::describe(damage).write();
                libc::EINVAL
            }
        }
    }

    /// The control contract's `listen`.
    pub fn listen(&self, function: Option<EventFunction>, context: *mut c_void) -> c_int {
        // The lock keeps a growing heap from seeing a function with another's context.
        let heap = self.heap();
        let status = match function {
            None => {
                self.listener.store(ptr::null_mut(), Ordering::Relaxed);
                0
            }
            Some(_) if !self.listener.load(Ordering::Relaxed).is_null() => libc::EBUSY,
            Some(function) => {
                self.context.store(context, Ordering::Relaxed);
                self.listener.store(function as *mut c_void, Ordering::Relaxed);
                0
            }
        };
        drop(heap);
        status
    }

    /// At process start, when there is one thread: the fault hook and the hook on growth.
    pub fn start(&self, grown: fn(usize)) {
        // SAFETY: a valid C string; nobody changes the environment during start-up.
        let variable = unsafe { libc::getenv(c"HEAPTOLL_FAIL_EVERY".as_ptr()) };
        let every = if variable.is_null() {
            0
        } else {
            // SAFETY: what getenv gave is a C string.
            match unsafe { core::ffi::CStr::from_ptr(variable) }.to_str().ok().and_then(|text| text.parse().ok()) {
                Some(every) => every,
                None => Message::new()
                    .text("HEAPTOLL_FAIL_EVERY is not a number: let every how many-th request for memory fail? (0: none)")
                    .abort(),
            }
        };
        prepare_barriers();
        let mut heap = self.heap();
        heap.region_mut().fail_every(every);
        heap.region_mut().on_growth(grown);
        let mapped = heap.region().mapped_bytes();
        drop(heap);
        self.tell(mapped);
    }

    /// The heap has grown to `mapped` bytes: called with the lock held.
    pub fn grown(&self, mapped: usize) {
        self.tell(mapped);
        let listener = self.listener.load(Ordering::Relaxed);
        if listener.is_null() {
            return;
        }
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a valid place for the answer.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        let event = RawEvent {
            size: size_of::<RawEvent>() as u32,
            kind: HEAP_GROWN,
            time_ns: now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64,
            collection: 0,
            value: mapped as u64,
            mapped_bytes: mapped as u64,
        };
        // SAFETY: `listen` stored it from a function of that type, with its context, and we hold the lock it takes.
        unsafe {
            let function = core::mem::transmute::<*mut c_void, EventFunction>(listener);
            function(&event, self.context.load(Ordering::Relaxed));
        }
    }

    fn tell(&self, mapped: usize) {
        let slot = self.writer.slot();
        slot.mapped_bytes.store(mapped as u64, Ordering::Relaxed);
        slot.mapped_high_bytes.fetch_max(mapped as u64, Ordering::Relaxed);
    }

    /// At process end: what changes too often to be told at once. A signal handler may have called exit in the middle of
    /// malloc: then nothing is told.
    pub fn finish(&self) {
        let Some(heap) = self.heap.try_lock() else { return };
        let search = heap.search();
        drop(heap);
        if let Some(search) = search {
            let slot = self.writer.slot();
            slot.searches.store(search.searches, Ordering::Relaxed);
            slot.search_steps.store(search.steps, Ordering::Relaxed);
            slot.search_longest.store(search.longest, Ordering::Relaxed);
        }
    }

    /// fork's prepare handler.
    pub fn before_fork(&self) {
        self.heap.before_fork();
    }

    /// fork's parent handler.
    pub fn after_fork(&self) {
        self.heap.after_fork();
    }

    /// fork's child handler: the child has a heap of this size from the start.
    pub fn after_fork_in_child(&self) {
        self.heap.after_fork_in_child();
        let mapped = self.heap().region().mapped_bytes();
        self.tell(mapped);
    }
}
