//! Threads that mark in parallel. They live from when the world is stopped until everything is marked, so that between
//! collections the process has the program's threads only: neither fork nor a reader of `/proc/self/task` finds one of
//! these.
//!
//! They are made by clone(2) itself and not by the C library. They use the thread-local storage of the thread that
//! collects, which is why nothing here may call into the C library: they read, set mark bits, make direct system calls,
//! and end. All signals are blocked in them. Their call stacks, their mark stacks and the pool are one region.

use core::arch::asm;
use core::mem;
use core::ops::{AddAssign, Range};
use core::sync::atomic::{AtomicU32, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::{Region, SignalMaskGuard, futex, system_call};

use crate::pool::Pool;
use crate::stack::{Grey, MarkStack};
use crate::sync::poll;

/// Live bytes from which on a heap is marked by several threads: marking takes some milliseconds then, and starting a
/// thread some ten microseconds.
pub const THRESHOLD: usize = 16 << 20;
/// Most threads that mark.
pub const MARKERS_MAX: usize = 64;
/// If no setting gives a number: the cores from which several threads mark, and the most threads that do.
const CORES_MIN: usize = 4;
const DEFAULT_MAX: usize = 4;

/// A helper's own memory, bytes: its description, its mark stack, its call stack. The latter holds a marker, some
/// kilobytes.
const SLOT: usize = 1 << 20;
const CALLS: usize = 128 << 10;
/// The pool's, bytes.
const POOL: usize = 256 << 10;
/// Bytes of a helper's mark stack that are kept from one collection to the next.
const KEPT: usize = 64 << 10;
/// Grey objects taken from the pool at once.
const CHUNK: usize = 64;

const _: () = {
    // Description, mark stack and call stack have space in a slot, the pool for every marker's chunk.
    assert!(CALLS + KEPT < SLOT && SLOT.is_multiple_of(4096) && POOL.is_multiple_of(4096));
    assert!(CHUNK * MARKERS_MAX * size_of::<Grey>() <= POOL);
    // The kernel clears the first word of a helper when its thread has ended.
    assert!(mem::offset_of!(Helper<()>, running) == 0);
};

/// What a helper is to do.
pub trait Work {
    /// Marks what the pool holds until no marker has anything left; see [`help`].
    ///
    /// # Safety
    /// Called only by a helper of [`Workers::run`], while the world is stopped. It must not call into the C library nor
    /// use thread-local storage.
    unsafe fn help(&self, stack: &mut MarkStack, pool: &Pool<Grey>) -> MarkOutcome;
}

/// The result of one marker, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MarkOutcome {
    /// Bytes in blocks that were marked.
    pub marked: usize,
    /// A block was marked for which no stack had space, so that it was not scanned.
    pub overflowed: bool,
    /// Processor time of helpers, ns. Theirs alone: the leading thread knows its own.
    pub cpu_ns: u64,
}

impl AddAssign for MarkOutcome {
    fn add_assign(&mut self, other: MarkOutcome) {
        self.marked += other.marked;
        self.overflowed |= other.overflowed;
        self.cpu_ns += other.cpu_ns;
    }
}

/// How many threads mark, and the memory of the helpers.
pub struct Workers {
    /// Threads that mark a large heap, the one that collects among them.
    count: usize,
    threshold: usize,
    /// Entries of a helper's stack and of the pool, at most.
    limit: usize,
    region: Region,
}

/// A helper: what it is to do, and its result.
#[repr(C)]
struct Helper<W> {
    /// 1 until the kernel has seen the thread end.
    running: AtomicU32,
    tid: i32,
    work: *const W,
    pool: *const Pool<Grey>,
    stack: MarkStack,
    outcome: MarkOutcome,
}

impl Default for Workers {
    fn default() -> Workers {
        Workers::new()
    }
}

impl Workers {
    pub const fn new() -> Workers {
        Workers { count: 1, threshold: THRESHOLD, limit: usize::MAX, region: Region::new() }
    }

    /// Sets how many threads mark: as the user sets, or by the cores the process may use.
    pub fn configure(&mut self, wanted: Option<usize>) {
        self.count = wanted.unwrap_or_else(|| default_for(cores())).clamp(1, MARKERS_MAX);
    }

    /// Sets the live bytes from which several threads mark, and the maximum number of entries of their stacks and of
    /// the pool: for tests.
    pub fn set_limits(&mut self, threshold: usize, limit: usize) {
        self.threshold = threshold;
        self.limit = limit.max(1);
    }

    /// Prepares for a heap of about `live` bytes; returns how many may mark. Where the system gives no memory for
    /// helpers it is one.
    pub fn prepare(&mut self, live: usize) -> usize {
        if self.count == 1 || live < self.threshold {
            return 1;
        }
        let has = self.region.end() - self.region.start();
        let needs = POOL + (self.count - 1) * SLOT;
        if has < needs && self.region.grow(needs - has).is_none() {
            return 1;
        }
        self.count
    }

    /// Where its memory lies.
    pub fn range(&self) -> Range<usize> {
        self.region.mapped()
    }

    /// Bytes of it that are in use.
    pub fn mapped_bytes(&self) -> usize {
        self.region.mapped_bytes()
    }

    /// Marks by `markers` threads, at least two, or as many of them as can be started: helpers that do `work`, and the
    /// calling one, which does `lead`. This begins with what it knows and ends with [`help`]. Also returns the helpers'
    /// results, and how many they were.
    ///
    /// # Safety
    /// The world is stopped, and [`Workers::prepare`] has returned `markers` or more.
    pub unsafe fn run<W: Work, R>(
        &mut self,
        markers: usize,
        work: &W,
        lead: impl FnOnce(&Pool<Grey>) -> R,
    ) -> (R, MarkOutcome, usize) {
        assert_internal!((2..=self.count).contains(&markers), "as many threads mark as were prepared for");
        assert_internal!(
            self.range().len() >= POOL + (markers - 1) * SLOT,
            "each helper has a slot of the region"
        );
        let entries = self.region.start() as *mut Grey;
        // SAFETY: the first part of the region, which `prepare` has made.
        let pool = unsafe { Pool::new(entries, (POOL / size_of::<Grey>()).min(self.limit)) };
        let helpers = self.start(markers - 1, work, &pool);
        let led = lead(&pool);
        let mut outcome = MarkOutcome::default();
        for number in 0..helpers {
            let helper = self.helper::<W>(number);
            // SAFETY: `start` has written the helper; its thread refers to neither member.
            unsafe { end(&(*helper).running, (*helper).tid) };
            // SAFETY: `end` has seen the thread end, so that no other refers to these members.
            let (helper_stack, helper_outcome) = unsafe { (&(*helper).stack, (*helper).outcome) };
            assert_internal!(helper_stack.is_empty(), "a helper ends with an empty mark stack");
            outcome += helper_outcome;
            helper_stack.shrink(KEPT);
        }
        (led, outcome, helpers)
    }

    fn helper<W>(&self, number: usize) -> *mut Helper<W> {
        assert_internal!(
            POOL + (number + 1) * SLOT <= self.range().len(),
            "each helper has a slot of the region"
        );
        (self.region.start() + POOL + number * SLOT) as *mut Helper<W>
    }

    /// Starts threads; returns how many there are.
    fn start<W: Work>(&self, wanted: usize, work: &W, pool: &Pool<Grey>) -> usize {
        // Helpers begin with the signals that this thread blocks.
        let _signal_mask = SignalMaskGuard::all_but(&[]);
        let mut started = 0;
        while started < wanted {
            let place = self.helper::<W>(started);
            let grey_objects =
                place as usize + size_of::<Helper<W>>().next_multiple_of(64)..place as usize + SLOT - CALLS;
            assert_internal!(
                grey_objects.start < grey_objects.end && (place as usize + SLOT).is_multiple_of(16),
                "description, mark stack and call stack of a helper do not overlap"
            );
            // SAFETY: a slot of the region, which no thread uses; the mark stack lies between the description and the
            // call stack.
            unsafe {
                let mut stack = MarkStack::fixed(grey_objects);
                stack.limit(self.limit);
                let running = AtomicU32::new(1);
                let outcome = MarkOutcome::default();
                place.write(Helper { running, tid: 0, work, pool, stack, outcome });
            }
            pool.join();
            // SAFETY: `place` was written above, and the end of its slot is its call stack; all signals are blocked.
            // `run` ends the helper before the slot is used again.
            let tid = unsafe { spawn(place, place as usize + SLOT) };
            if tid < 0 {
                pool.leave();
                break;
            }
            // SAFETY: `place` was written above; its thread does not read `tid`.
            unsafe { (&raw mut (*place).tid).write(tid as i32) };
            started += 1;
        }
        assert_internal!(started <= wanted, "no more threads start than were wanted");
        started
    }
}

/// Takes what others leave and passes it to `read`, which marks everything from there, until no marker has anything
/// left.
pub fn help(pool: &Pool<Grey>, mut read: impl FnMut(&[Grey])) {
    let mut chunk = [Grey { start: 0, bytes: 0 }; CHUNK];
    loop {
        let taken = pool.take(&mut chunk);
        assert_internal!(taken <= CHUNK, "a marker takes what it has space for");
        if taken == 0 {
            return;
        }
        read(&chunk[..taken]);
    }
}

/// The body of a helper's thread.
///
/// # Safety
/// The helper is as `Workers::start` makes it.
unsafe extern "C" fn enter<W: Work>(helper: *mut Helper<W>) {
    // SAFETY: until the thread has ended, `Workers` uses only `running` and `tid` of the helper, to which nothing here
    // refers. The thread ends before work and pool do: `Workers::run` waits.
    let (stack, work, pool) = unsafe { (&mut (*helper).stack, &*(*helper).work, &*(*helper).pool) };
    // SAFETY: this is a helper of `Workers::run`, and the world is stopped.
    let mut outcome = unsafe { work.help(stack, pool) };
    outcome.cpu_ns = cpu_ns();
    // SAFETY: the member is the thread's until it has ended.
    unsafe { (&raw mut (*helper).outcome).write(outcome) };
}

/// Processor time of the calling thread, ns: of a helper, all that it took.
fn cpu_ns() -> u64 {
    let mut now = [0_u64; 2];
    // SAFETY: a valid place for seconds and nanoseconds; this clock always exists.
    unsafe {
        system_call(
            libc::SYS_clock_gettime,
            [libc::CLOCK_THREAD_CPUTIME_ID as usize, now.as_mut_ptr() as usize, 0, 0, 0, 0],
        )
    };
    now[0] * 1_000_000_000 + now[1]
}

/// Waits until a helper's thread is gone, from its stack and from `/proc` too.
fn end(running: &AtomicU32, tid: i32) {
    while running.load(Ordering::Acquire) != 0 {
        if poll(running, 1) {
            futex::wait_for_kernel(running, 1);
        }
    }
    // SAFETY: `getpid` and `tgkill` take no pointers; signal 0 only tests. The number cannot be another thread's: the
    // others are stopped.
    let is_there = || unsafe {
        let process = system_call(libc::SYS_getpid, [0; 6]);
        system_call(libc::SYS_tgkill, [process as usize, tid as usize, 0, 0, 0, 0]) == 0
    };
    while is_there() {
        // SAFETY: `sched_yield` takes no pointers and cannot fail.
        unsafe { system_call(libc::SYS_sched_yield, [0; 6]) };
    }
}

/// Starts a thread; a negated `errno` when there is none.
///
/// # Safety
/// The helper is written, below `stack`, the end of memory of its own, a multiple of 16; all signals are blocked.
unsafe fn spawn<W: Work>(helper: *mut Helper<W>, stack: usize) -> isize {
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_CHILD_CLEARTID;
    let result: isize;
    // SAFETY: the new thread begins after the call with the same registers but for rax and its stack, does its work and
    // ends; it never returns here. When it has ended the kernel clears `running`, the first field, and wakes the thread
    // that waits for it.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "xor edi, edi",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            "2:",
            exit = const libc::SYS_exit,
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") flags as usize,
            in("rsi") stack,
            in("rdx") 0_usize,
            in("r10") helper,
            in("r8") 0_usize,
            in("r12") helper,
            in("r13") enter::<W> as unsafe extern "C" fn(*mut Helper<W>),
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Cores that the process may use.
pub fn cores() -> usize {
    let mut set = [0_u64; 16];
    let bytes = mem::size_of_val(&set);
    // SAFETY: `set` is writable for `bytes`; 0 is the calling thread.
    let written =
        unsafe { system_call(libc::SYS_sched_getaffinity, [0, bytes, set.as_mut_ptr() as usize, 0, 0, 0]) };
    if written < 0 { 1 } else { set.iter().map(|word| word.count_ones() as usize).sum() }
}

/// Threads that mark on a machine of so many cores: on few, the program has other threads or other programs for the
/// second one, and two markers take more processor time than one.
const fn default_for(cores: usize) -> usize {
    if cores < CORES_MIN {
        return 1;
    }
    if cores / 2 < DEFAULT_MAX { cores / 2 } else { DEFAULT_MAX }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// Returns its own thread number instead of bytes.
    struct Numbered;

    impl Work for Numbered {
        unsafe fn help(&self, _: &mut MarkStack, pool: &Pool<Grey>) -> MarkOutcome {
            help(pool, |_| {});
            // SAFETY: `gettid` takes no pointers and cannot fail.
            let marked = unsafe { system_call(libc::SYS_gettid, [0; 6]) } as usize;
            MarkOutcome { marked, ..MarkOutcome::default() }
        }
    }

    #[test]
    fn helpers_are_gone_when_the_work_is_done() {
        for _ in 0..100 {
            let mut workers = Workers::new();
            workers.configure(Some(2));
            assert_eq!(workers.prepare(THRESHOLD), 2);
            // SAFETY: `prepare` has returned 2; nothing here reads a heap, so no world needs to be stopped.
            let (led, outcome, helpers) = unsafe {
                workers.run(2, &Numbered, |pool| {
                    pool.give(&[Grey { start: 0, bytes: 0 }]);
                    help(pool, |_| {});
                    7
                })
            };
            assert_eq!((led, helpers), (7, 1));
            let gone = std::format!("/proc/self/task/{}", outcome.marked);
            assert!(outcome.cpu_ns > 0 && outcome.cpu_ns < 1_000_000_000, "{} ns", outcome.cpu_ns);
            assert!(outcome.marked != 0 && !std::path::Path::new(&gone).exists(), "{gone}");
        }
    }

    #[test]
    fn small_heaps_are_marked_by_one() {
        let mut workers = Workers::new();
        workers.configure(Some(4));
        assert_eq!(workers.prepare(THRESHOLD - 1), 1);
        assert_eq!(workers.prepare(THRESHOLD), 4);
        workers.configure(Some(1));
        assert_eq!(workers.prepare(usize::MAX), 1);
    }

    #[test]
    fn few_cores_mean_one_marker() {
        assert_eq!([1, 2, 3, 4, 6, 8, 64].map(default_for), [1, 1, 1, 2, 3, 4, 4]);
        assert!(cores() >= 1);
    }
}
