//! The way of a block that the program frees: into its thread's buffer, and out of it to the manager.
//!
//! A free is the same work whatever the bound: the block's size is requested, its address is put into the buffer, the
//! volume is added to. With a bound of 1 byte every block passes it and goes on at once: that is what the layer costs
//! without delay, to which delays are compared.

use core::ffi::c_void;
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64};

use heaptoll_next::family::{Free, UsableSize};
use heaptoll_stats_page::{Writer, WriterKind};

use crate::quarantine::settings::Settings;
use crate::quarantine::thread::{Slot, Thread, Threads};
use crate::quarantine::volume::{AddResult, Epoch, MOST, Volume};

/// Below this bound releases are reported only every [`AT_A_TIME`].
const OFTEN: u64 = 64 << 10;
const AT_A_TIME: u64 = 256;

/// A quarantine: a static of the layer.
pub struct Quarantine {
    usable_size: AtomicPtr<()>,
    free: AtomicPtr<()>,
    /// Not 0 while there is one thread.
    single_threaded: AtomicPtr<u8>,
    size: AtomicU64,
    seed: AtomicU64,
    /// Releases between two reports, less one.
    between: AtomicU64,
    random: AtomicBool,
    /// Blocks may take the fast path.
    fast_path: AtomicBool,
    /// Called for each block that comes in, when blocks are checked.
    enters: AtomicPtr<()>,
    volume: Volume,
    threads: Threads,
    writer: Writer,
}

/// Called for a block that comes in, of so many bytes. False: it is not to be held, nor given to the manager.
pub type Enters = fn(*mut c_void, usize) -> bool;

/// The target of `single_threaded` where the C library has no such flag: never single-threaded.
static NEVER_SINGLE_THREADED: AtomicU8 = AtomicU8::new(0);

impl Quarantine {
    /// Not to be used before [`Quarantine::prepare`].
    pub const fn new() -> Quarantine {
        Quarantine {
            usable_size: AtomicPtr::new(ptr::null_mut()),
            free: AtomicPtr::new(ptr::null_mut()),
            single_threaded: AtomicPtr::new(ptr::null_mut()),
            size: AtomicU64::new(1),
            seed: AtomicU64::new(0),
            between: AtomicU64::new(0),
            random: AtomicBool::new(false),
            fast_path: AtomicBool::new(false),
            enters: AtomicPtr::new(ptr::null_mut()),
            volume: Volume::new(),
            threads: Threads::new(),
            writer: Writer::new(WriterKind::Layer, "quarantine"),
        }
    }

    /// Called once, before any thread enters. `free` gets what leaves; `enters`, if any, gets what comes in.
    /// `single_threaded` is the C library's flag that there is one thread, or null.
    pub fn prepare(
        &self,
        settings: &Settings,
        usable_size: UsableSize,
        free: Free,
        enters: Option<Enters>,
        single_threaded: *mut u8,
    ) {
        self.enters.store(enters.map_or(ptr::null_mut(), |enters| enters as *mut ()), Relaxed);
        self.fast_path.store(!settings.random && enters.is_none(), Relaxed);
        self.usable_size.store(usable_size as *mut (), Relaxed);
        self.free.store(free as *mut (), Relaxed);
        self.single_threaded.store(
            if single_threaded.is_null() { NEVER_SINGLE_THREADED.as_ptr() } else { single_threaded },
            Relaxed,
        );
        self.size.store(settings.size, Relaxed);
        self.seed.store(settings.seed, Relaxed);
        self.between.store(if settings.size < OFTEN { AT_A_TIME - 1 } else { 0 }, Relaxed);
        self.random.store(settings.random, Release);
        self.report_stats();
    }

    /// All threads.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// The volume.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// A record for the calling thread; `None`: there is no memory.
    pub fn enter(&self) -> Option<&Thread> {
        let thread = self.threads.take()?;
        thread.epoch.store(self.volume.epoch().0, Relaxed);
        let seed = self.seed.load(Relaxed);
        // Each thread has its own numbers, the same in each run: the first is the seed's own.
        let number = self.threads.each().count() as u64;
        let mixed = seed.wrapping_add(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        thread.random.store((mixed ^ (mixed >> 29)) | 1, Relaxed);
        thread.open(self.fast_path.load(Relaxed));
        Some(thread)
    }

    /// The calling thread ends: gives its held blocks to the manager, and releases its record.
    ///
    /// # Safety
    /// The thread does not use its record any more.
    pub unsafe fn leave(&self, thread: &Thread) {
        self.volume.take(Epoch(thread.epoch.load(Relaxed)), thread.held.load(Relaxed));
        self.give_back_all(thread);
        self.report_stats();
        self.threads.leave(thread);
    }

    /// The volume of a block: one where the manager reports no bytes, or buffers would grow without bound.
    #[inline(always)]
    fn volume_of(&self, block: *mut c_void) -> u64 {
        self.usable_size(block).max(1)
    }

    #[inline(always)]
    fn usable_size(&self, block: *mut c_void) -> u64 {
        // SAFETY: `prepare` stored a function of this type; the block is the manager's.
        unsafe { transmute::<*mut (), UsableSize>(self.usable_size.load(Relaxed))(block) as u64 }
    }

    #[inline(always)]
    fn to_manager(&self, block: *mut c_void) {
        // SAFETY: `prepare` stored a function of this type; the block is the manager's, and the quarantine has just
        // released it.
        unsafe { transmute::<*mut (), Free>(self.free.load(Relaxed))(block) }
    }

    #[inline(always)]
    fn single_threaded(&self) -> bool {
        // SAFETY: the C library's flag, or `NEVER_SINGLE_THREADED`; a byte that is written while there is one thread.
        unsafe { AtomicU8::from_ptr(self.single_threaded.load(Relaxed)).load(Relaxed) != 0 }
    }

    /// Takes in a block that the program frees.
    ///
    /// # Safety
    /// A block of the manager's, not null, that the program no longer has; `thread` is the calling thread's.
    #[inline(always)]
    pub unsafe fn hold(&self, thread: &Thread, block: *mut c_void) {
        let bytes = self.volume_of(block);
        let cursor = thread.cursor.load(Relaxed);
        if cursor >= thread.limit.load(Relaxed) {
            return self.hold_slow(thread, block, bytes);
        }
        let epoch = Epoch(thread.epoch.load(Relaxed));
        match self.volume.add(epoch, bytes, self.size.load(Relaxed), self.single_threaded()) {
            AddResult::Held => {
                thread.put(cursor, block);
                thread.held.store(thread.held.load(Relaxed) + bytes, Relaxed);
            }
            AddResult::Passed { epoch, volume } => {
                thread.put(cursor, block);
                self.volume.passed(volume, thread.held.load(Relaxed) + bytes);
                thread.epoch.store(epoch.0, Relaxed);
                self.give_back(thread, true);
            }
            AddResult::Not => self.hold_slow(thread, block, bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn hold_slow(&self, thread: &Thread, block: *mut c_void, bytes: u64) {
        if thread.busy() {
            return self.to_manager(block);
        }
        let enters = self.enters.load(Relaxed);
        if !enters.is_null() {
            let usable = self.usable_size(block) as usize;
            // SAFETY: `prepare` stored a function of this type.
            let holds = unsafe { transmute::<*mut (), Enters>(enters)(block, usable) };
            if !holds {
                return;
            }
        }
        loop {
            let epoch = self.volume.epoch();
            if epoch.0 != thread.epoch.load(Relaxed) {
                self.catch_up(thread, epoch);
            }
            if !thread.ensure_space() {
                // No memory to hold any more in.
                self.volume.take(epoch, thread.held.load(Relaxed));
                self.give_back_all(thread);
                return self.to_manager(block);
            }
            if self.random.load(Relaxed) {
                return self.hold_at_random(thread, block, bytes);
            }
            match self.volume.add(epoch, bytes, self.size.load(Relaxed), self.single_threaded()) {
                AddResult::Not => continue,
                AddResult::Held => {
                    thread.push(block);
                    thread.held.fetch_add(bytes, Relaxed);
                    thread.open(self.fast_path.load(Relaxed));
                }
                AddResult::Passed { epoch, volume } => {
                    thread.push(block);
                    let held = thread.held.fetch_add(bytes, Relaxed) + bytes;
                    self.volume.passed(volume, held);
                    thread.epoch.store(epoch.0, Relaxed);
                    self.give_back_all(thread);
                }
            }
            return;
        }
    }

    /// Other threads have passed the bound since: gives the blocks that the thread held then to the manager.
    fn catch_up(&self, thread: &Thread, epoch: Epoch) {
        self.volume.take(Epoch(thread.epoch.load(Relaxed)), thread.held.load(Relaxed));
        self.give_back_all(thread);
        thread.epoch.store(epoch.0, Relaxed);
    }

    fn hold_at_random(&self, thread: &Thread, block: *mut c_void, bytes: u64) {
        let bytes = bytes.min(MOST);
        thread.push(block);
        thread.held.fetch_add(bytes, Relaxed);
        self.volume.raise_high(self.volume.add_freely(bytes));
        let bound = self.size.load(Relaxed);
        if !self.volume.above(bound) {
            return thread.open(false);
        }
        thread.busy.store(true, Relaxed);
        while thread.blocks() > 0 && self.volume.above(bound) {
            let block = thread.swap_out(below(&thread.random, thread.blocks()));
            let bytes = self.volume_of(block).min(MOST);
            thread.held.fetch_sub(bytes, Relaxed);
            self.volume.take(Epoch(thread.epoch.load(Relaxed)), bytes);
            self.to_manager(block);
        }
        if thread.blocks() == 0 {
            thread.empty(false);
        }
        thread.open(false);
        thread.busy.store(false, Relaxed);
        self.released(thread);
    }

    /// Gives all of a thread's blocks to the manager, the oldest first. There are some. `fast_path`: whether further
    /// ones may take the fast path.
    #[inline(always)]
    fn give_back(&self, thread: &Thread, fast_path: bool) {
        let newest = thread.cursor.load(Relaxed).wrapping_sub(1);
        if thread.first.load(Relaxed) != newest {
            self.give_back_but(thread, newest);
        }
        // The newest last, so that its call is a tail call.
        // SAFETY: the slot before `cursor`, which has a block.
        let block = unsafe { (*newest).load(Relaxed) };
        thread.held.store(0, Relaxed);
        thread.empty(fast_path);
        self.released(thread);
        self.to_manager(block);
    }

    /// Gives all before the newest to the manager.
    #[inline(never)]
    fn give_back_but(&self, thread: &Thread, newest: *mut Slot) {
        // What the manager itself frees meanwhile takes the slow path, which sees by `first` that a release is under
        // way.
        thread.open(false);
        let mut at = thread.first.load(Relaxed);
        while at < newest {
            // SAFETY: a slot between `first` and `cursor`.
            let block = unsafe { (*at).load(Relaxed) };
            at = at.wrapping_add(1);
            thread.first.store(at, Release);
            self.to_manager(block);
        }
    }

    /// Gives all blocks to the manager, if there are any.
    fn give_back_all(&self, thread: &Thread) {
        if thread.blocks() > 0 {
            self.give_back(thread, self.fast_path.load(Relaxed));
        }
    }

    #[inline(always)]
    fn released(&self, thread: &Thread) {
        let releases = thread.releases.load(Relaxed) + 1;
        thread.releases.store(releases, Relaxed);
        if releases & self.between.load(Relaxed) == 0 {
            self.report_stats();
        }
    }

    /// Brings the statistics page up to date.
    #[cold]
    #[inline(never)]
    pub fn report_stats(&self) {
        let slot = self.writer.slot();
        let releases = self.threads.each().map(|thread| thread.releases.load(Relaxed)).sum();
        slot.held_releases.fetch_max(releases, Relaxed);
        slot.held_bytes.store(self.volume.held(), Relaxed);
        slot.held_high_bytes.fetch_max(self.volume.high().max(self.volume.held()), Relaxed);
    }

    /// The slot on the statistics page.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// In a child of fork: its only thread, which has this record, takes over what others held.
    pub fn after_fork(&self, own: &Thread) {
        let held = self.threads.adopt(own);
        own.open(self.fast_path.load(Relaxed));
        for thread in self.threads.each() {
            thread.releases.store(0, Relaxed);
        }
        own.epoch.store(self.volume.restart(held).0, Relaxed);
        self.report_stats();
    }
}

impl Default for Quarantine {
    fn default() -> Quarantine {
        Quarantine::new()
    }
}

/// A random number below `count`, which is not 0: xorshift (Marsaglia 2003) on the thread's state.
fn below(state: &AtomicU64, count: usize) -> usize {
    let mut word = state.load(Acquire);
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    state.store(word, Relaxed);
    (((word >> 32) * count as u64) >> 32) as usize
}

#[cfg(test)]
#[path = "delay_tests.rs"]
mod tests;
