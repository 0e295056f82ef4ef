//! The table of held blocks when they are checked: the size of each, and where it was freed.
//!
//! One lock for all: checking is for finding defects, not for measuring. Nothing of the manager is called under it.
//!
//! It is held over a fork. Handlers of other objects run meanwhile, and may wait for a thread that frees: so a thread
//! that finds it held for a fork does not wait for ever ([`PATIENCE_NS`]), but does without. Then a block that comes in
//! is not recorded, and one that is to leave stays for good.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicUsize};

use heaptoll_next::blocks::Blocks;

use crate::quarantine::fill::{self, Change};
use heaptoll_next::memory;

/// A block that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantinedBlock {
    /// Its address; 0 in a free slot.
    pub block: usize,
    /// Bytes of it.
    pub bytes: usize,
    /// The call stack that freed it, as a number; 0: unknown.
    pub site: u32,
    /// Its damage has been reported already.
    reported: bool,
}

/// A block that was changed while it was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The block.
    pub held: QuarantinedBlock,
    /// The change.
    pub change: Change,
}

/// What a block is when the program frees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is held from here on.
    New,
    /// It is held already, since then: it is freed for the second time.
    Again(QuarantinedBlock),
    /// Unknown: there is no memory for the table, or a fork has the lock.
    Unknown,
}

/// A block cannot leave: a fork has the lock. It is not to be given to the manager, now or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stays;

/// Slots for held blocks, in memory that doubles.
struct Slots {
    start: Option<NonNull<QuarantinedBlock>>,
    capacity: usize,
    used: usize,
    /// The slot that was freed last, plus one; its `bytes` lead to the one before. 0: none.
    left: usize,
    by_block: Blocks,
}

/// All held blocks.
pub struct Checked {
    /// The thread that holds the lock; 0: none.
    holder: AtomicUsize,
    /// How often it has taken it.
    depth: AtomicUsize,
    /// Whether it is held over a fork.
    forking: AtomicU8,
    slots: UnsafeCell<Slots>,
}

// SAFETY: only the lock's holder reaches the slots.
unsafe impl Sync for Checked {}

const FIRST: usize = 64 << 10;

/// How long a thread waits for a lock that is held over a fork, ns. A fork takes some milliseconds.
const PATIENCE_NS: u64 = 100_000_000;

const NO_FORK: u8 = 0;
const FORK: u8 = 1;
/// A thread has waited longer than [`PATIENCE_NS`] for it.
const LONG_FORK: u8 = 2;

impl Slots {
    fn get(&self, at: usize) -> *mut QuarantinedBlock {
        debug_assert!(at < self.used);
        self.start.map_or(ptr::null_mut(), |start| start.as_ptr().wrapping_add(at))
    }

    fn put(&mut self, held: QuarantinedBlock) -> Option<usize> {
        let at = match self.left {
            0 => {
                if self.used == self.capacity && !self.grow() {
                    return None;
                }
                self.used += 1;
                self.used - 1
            }
            left => {
                // SAFETY: a slot that was in use once, which leads to the one freed before.
                self.left = unsafe { (*self.get(left - 1)).bytes };
                left - 1
            }
        };
        // SAFETY: below `used`, which is within the memory.
        unsafe { self.get(at).write(held) };
        Some(at)
    }

    fn grow(&mut self) -> bool {
        let bytes = self.capacity * size_of::<QuarantinedBlock>();
        let made = match self.start {
            None => memory::map(FIRST),
            // SAFETY: a mapping of so many bytes; addresses in it live no longer than the lock is held.
            Some(start) => unsafe { memory::enlarge(start.cast(), bytes, bytes * 2) },
        };
        let Some(made) = made else { return false };
        self.start = Some(made.cast());
        self.capacity = if bytes == 0 { FIRST } else { bytes * 2 } / size_of::<QuarantinedBlock>();
        true
    }

    fn take(&mut self, at: usize) -> QuarantinedBlock {
        // SAFETY: `at` is a slot in use, as `by_block` has it.
        let held = unsafe { self.get(at).read() };
        let empty = QuarantinedBlock { block: 0, bytes: self.left, site: 0, reported: true };
        // SAFETY: `at` is a slot in use, as `by_block` has it.
        unsafe { self.get(at).write(empty) };
        self.left = at + 1;
        held
    }
}

impl Default for Checked {
    fn default() -> Checked {
        Checked::new()
    }
}

impl Checked {
    /// An empty table.
    pub const fn new() -> Checked {
        let slots = Slots { start: None, capacity: 0, used: 0, left: 0, by_block: Blocks::new() };
        let (holder, depth) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Checked { holder, depth, forking: AtomicU8::new(NO_FORK), slots: UnsafeCell::new(slots) }
    }

    /// `None`: the lock is held over a fork that does not end.
    fn with<T>(&self, work: impl FnOnce(&mut Slots) -> T) -> Option<T> {
        if !self.lock() {
            return None;
        }
        // SAFETY: `lock` has taken the lock, and `work` does not call `with` again.
        let answer = work(unsafe { &mut *self.slots.get() });
        self.unlock();
        Some(answer)
    }

    /// Takes the lock, to hold it over a fork. Other objects' fork handlers may free meanwhile, on this thread, before
    /// the fork and after it: for its holder the lock is open.
    pub fn before_fork(&self) {
        // Another thread's fork ends without this one, which does not free.
        while !self.lock() {}
        self.forking.store(FORK, Relaxed);
    }

    /// Releases it, on both sides of the fork; the caller took it.
    pub fn after_fork(&self) {
        self.unlock();
    }

    /// Takes the lock. False: it is held over a fork, and has been for too long.
    fn lock(&self) -> bool {
        // SAFETY: `pthread_self` takes no pointers and cannot fail; it is the same in the child of a fork.
        let own = unsafe { libc::pthread_self() } as usize;
        if self.holder.load(Relaxed) != own {
            let mut since = None;
            while self.holder.compare_exchange_weak(0, own, Acquire, Relaxed).is_err() {
                match self.forking.load(Relaxed) {
                    NO_FORK => since = None,
                    FORK => {
                        let now = now_ns();
                        if now - *since.get_or_insert(now) > PATIENCE_NS {
                            // The next ones need not wait either. If the fork has ended meanwhile, this changes
                            // nothing.
                            let _ = self.forking.compare_exchange(FORK, LONG_FORK, Relaxed, Relaxed);
                        }
                    }
                    _ => return false,
                }
                // SAFETY: `sched_yield` takes no pointers and cannot fail.
                unsafe { libc::sched_yield() };
            }
        }
        self.depth.store(self.depth.load(Relaxed) + 1, Relaxed);
        true
    }

    fn unlock(&self) {
        let depth = self.depth.load(Relaxed) - 1;
        self.depth.store(depth, Relaxed);
        if depth == 0 {
            self.forking.store(NO_FORK, Relaxed);
            self.holder.store(0, Release);
        }
    }

    /// A block comes in: it is filled.
    ///
    /// # Safety
    /// A block of so many bytes that the program no longer has, or has given back before.
    pub unsafe fn enters(&self, block: *mut c_void, bytes: usize, site: u32) -> Admission {
        match self.find(block) {
            None => return Admission::Unknown,
            Some(Some(held)) => return Admission::Again(held),
            Some(None) => {}
        }
        // SAFETY: the program no longer has the block, as this function requires, and it was not held before.
        unsafe { fill::fill(block.cast(), bytes) };
        let entry = self.with(|slots| {
            let held = QuarantinedBlock { block: block as usize, bytes, site, reported: false };
            let Some(at) = slots.put(held) else { return Admission::Unknown };
            match slots.by_block.insert(held.block, at) {
                Ok(None) => Admission::New,
                // Another thread was faster with the same block.
                Ok(Some(other)) => {
                    slots.take(other);
                    Admission::Again(held)
                }
                Err(_) => {
                    slots.take(at);
                    Admission::Unknown
                }
            }
        });
        entry.unwrap_or(Admission::Unknown)
    }

    fn find(&self, block: *mut c_void) -> Option<Option<QuarantinedBlock>> {
        self.with(|slots| {
            // The table has no look-up: what is taken out is put back, for which there is space.
            let at = slots.by_block.remove(block as usize)?;
            slots.by_block.insert(block as usize, at).ok()?;
            // SAFETY: `at` is a slot in use, as `by_block` has it.
            Some(unsafe { slots.get(at).read() })
        })
    }

    /// A block leaves. Returns its damage, unless that was reported before.
    ///
    /// # Errors
    /// [`Stays`].
    ///
    /// # Safety
    /// The block is the manager's and can be read.
    pub unsafe fn leaves(&self, block: *mut c_void) -> Result<Option<Damage>, Stays> {
        let found = self.with(|slots| slots.by_block.remove(block as usize).map(|at| slots.take(at)));
        let Some(held) = found.ok_or(Stays)?.filter(|held| !held.reported) else { return Ok(None) };
        // SAFETY: `enters` filled the block, for as many bytes; it can be read, as this function requires.
        let change = unsafe { fill::changed(block.cast(), held.bytes) };
        Ok(change.map(|change| Damage { held, change }))
    }

    /// Scans all held blocks, without letting any go, and reports their damage, each once.
    ///
    /// # Safety
    /// Before the manager gets a block, [`Checked::leaves`] is called.
    pub unsafe fn scan(&self, mut report: impl FnMut(Damage)) {
        let mut at = 0;
        loop {
            let found = self.with(|slots| {
                while at < slots.used {
                    // SAFETY: a slot in use, or a free one, which is marked as reported.
                    let held = unsafe { &mut *slots.get(at) };
                    at += 1;
                    if held.reported {
                        continue;
                    }
                    // SAFETY: the block is held as long as it is in the table, whose lock this thread holds.
                    if let Some(change) = unsafe { fill::changed(held.block as *const u8, held.bytes) } {
                        held.reported = true;
                        return Some(Damage { held: *held, change });
                    }
                }
                None
            });
            match found {
                Some(Some(damage)) => report(damage),
                Some(None) | None => return,
            }
        }
    }
}

/// `CLOCK_MONOTONIC`, ns.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn damage_is_reported_once_with_its_site() {
        let checked = Checked::new();
        let mut blocks: Vec<Vec<u8>> = (1..2000).map(|bytes| vec![0; bytes]).collect();
        let mut reported = Vec::new();
        // SAFETY: the vectors' own bytes, which no other code uses.
        unsafe {
            for (at, block) in blocks.iter_mut().enumerate() {
                let entry = checked.enters(block.as_mut_ptr().cast(), block.len(), at as u32);
                assert_eq!(entry, Admission::New);
            }
            let (again, bytes) = (blocks[7].as_mut_ptr().cast(), blocks[7].len());
            assert!(matches!(
                checked.enters(again, bytes, 9),
                Admission::Again(QuarantinedBlock { site: 7, .. })
            ));
            blocks[100][3] = 1;
            checked.scan(|damage| reported.push((damage.held.site, damage.change.offset)));
            assert_eq!(reported, [(100, 3)]);
            blocks[200][5] = 2;
            for (at, block) in blocks.iter_mut().enumerate() {
                let damage = checked.leaves(block.as_mut_ptr().cast());
                let offset = damage.map(|damage| damage.map(|damage| damage.change.offset));
                assert_eq!(offset, Ok((at == 200).then_some(5)));
            }
            let slots = &*checked.slots.get();
            let used = slots.used;
            for block in &mut blocks {
                assert_eq!(checked.enters(block.as_mut_ptr().cast(), block.len(), 1), Admission::New);
            }
            assert_eq!((*checked.slots.get()).used, used, "places are used again");
        }
    }

    #[test]
    fn a_fork_that_waits_for_a_thread_that_frees_does_not_wait_for_ever() {
        let checked = Checked::new();
        let mut blocks = [[0u8; 64]; 2];
        let [first, second] = blocks.each_mut().map(|block| block.as_mut_ptr() as usize);
        // SAFETY: the arrays' own bytes, which no other code uses.
        unsafe {
            assert_eq!(checked.enters(first as *mut c_void, 64, 1), Admission::New);
            checked.before_fork();
            let other =
                || (checked.leaves(first as *mut c_void), checked.enters(second as *mut c_void, 64, 2));
            // As a prepare handler would that needs what the other thread has.
            let answers = std::thread::scope(|scope| scope.spawn(other).join());
            assert_eq!(answers.ok(), Some((Err(Stays), Admission::Unknown)));
            // The thread itself is not kept out.
            assert_eq!(checked.enters(second as *mut c_void, 64, 3), Admission::New);
            checked.after_fork();
            assert_eq!(checked.leaves(first as *mut c_void), Ok(None));
            let other = || checked.leaves(second as *mut c_void);
            assert_eq!(std::thread::scope(|scope| scope.spawn(other).join()).ok(), Some(Ok(None)));
        }
    }
}
