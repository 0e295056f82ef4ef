//! Executing the program's words. Each call costs the driver a load of its word, a branch to its kind, and a load or
//! store in the table of blocks, which was prefetched some words ago.

use std::ffi::c_void;

use heaptoll_replay::word::{self, Code, ESCAPE};

use super::tables::{Blocks, Sizes};
use super::watch::{Call, LiveTable, Watch};

/// Words between a slot's prefetch and its use: some 100 ns, so that a table larger than the caches costs little.
pub const AHEAD: usize = 64;

const MALLOC: u64 = Code::Malloc as u64;
const CALLOC: u64 = Code::Calloc as u64;
const ALIGNED: u64 = Code::Aligned as u64;
const REALLOC: u64 = Code::Realloc as u64;
const FREE: u64 = Code::Free as u64;
const WAIT: u64 = Code::Wait as u64;
const TURN: u64 = Code::Turn as u64;
const PASS: u64 = Code::Pass as u64;
const START: u64 = Code::Start as u64;
const MARK: u64 = Code::Mark as u64;

/// What a thread of the driver does for other threads.
pub trait Relations {
    /// Waits until a slot has come to a generation; false: the replay has failed.
    fn wait(&mut self, slot: u32, generation: u64) -> bool;
    /// Waits until it is this run's turn; false: the replay has failed.
    fn turn(&mut self, run: u64) -> bool;
    /// Gives the turn to another thread; `last`: this one ends with it.
    fn pass(&mut self, thread: u32, last: bool);
    /// Starts a thread; false: the replay has failed.
    fn start(&mut self, thread: u32) -> bool;
    /// A call of the manager went wrong.
    fn fail(&mut self, why: String);
}

/// The tables that the words work on.
pub struct Executor<'a, W: Watch, const GENERATIONS: bool> {
    pub blocks: Blocks<GENERATIONS>,
    pub sizes: Sizes,
    pub common: &'a W::Common,
}

/// Whether words are a whole number of operations on slots of the table; then how many of them are calls.
pub fn check<const GENERATIONS: bool>(words: &[u64], blocks: &Blocks<GENERATIONS>) -> Option<u64> {
    let (mut at, mut calls) = (0, 0);
    while at < words.len() {
        let word = words[at];
        let code = word::code(word);
        let long = code == ALIGNED || code == WAIT || code <= REALLOC && word::size(word) == ESCAPE;
        if code > MARK || code <= WAIT && !blocks.holds(word::slot(word)) {
            return None;
        }
        calls += u64::from(code <= FREE);
        at += 1 + usize::from(long);
    }
    (at == words.len()).then_some(calls)
}

/// The size of a call: in its word, or in the next one, after which `at` is put.
///
/// # Safety
/// The words passed [`check`], and `at` is the index after the call's word.
#[inline(always)]
unsafe fn size_of(word: u64, words: *const u64, at: &mut usize) -> u64 {
    let size = word::size(word);
    if size != ESCAPE {
        return size;
    }
    // SAFETY: `check` has found that the operation has another word, as the caller guarantees.
    let size = unsafe { *words.add(*at) };
    *at += 1;
    size
}

/// The byte that a block is filled with: no pointer consists of it.
fn pattern(slot: u32) -> u8 {
    (slot as u8).wrapping_mul(37) | 1
}

/// Whether all bytes of a range are this one.
fn is_filled(start: *const u8, bytes: usize, with: u8) -> bool {
    // SAFETY: callers pass a part of a live block that they have written, `calloc` its whole block.
    let range = unsafe { std::slice::from_raw_parts(start, bytes) };
    // All are the first where each is the one before it. That is one `memcmp`, which is fast in tests, too.
    range.first().is_none_or(|first| *first == with && range[1..] == range[..bytes - 1])
}

impl<W: Watch, const GENERATIONS: bool> Executor<'_, W, GENERATIONS> {
    /// Executes the words. False when something went wrong, which has been reported to `others`.
    ///
    /// # Safety
    /// The words passed [`check`]; [`AHEAD`] more words can be read after them; slots are used in the program's order.
    pub unsafe fn run<const TOUCH: u8>(
        &self,
        words: *const u64,
        count: usize,
        watch: &mut W,
        others: &mut impl Relations,
    ) -> bool {
        let mut at = 0;
        while at < count {
            // SAFETY: `at` is below `count`, and AHEAD more words can be read: the caller guarantees it; `check` has
            // checked the slots against the table.
            unsafe {
                let word = *words.add(at);
                self.blocks.prefetch(word::slot(*words.add(at + AHEAD)));
                at += 1;
                let slot = word::slot(word);
                match word::code(word) {
                    MALLOC => {
                        let size = size_of(word, words, &mut at);
                        let block = watch.call(Call::Allocate, || libc::malloc(size as usize));
                        if !self.made::<TOUCH>(slot, block, size, watch) {
                            return refused(others, "malloc", size);
                        }
                    }
                    FREE => {
                        if !self.free::<TOUCH>(slot, watch) {
                            return changed(others, slot);
                        }
                    }
                    CALLOC => {
                        let size = size_of(word, words, &mut at);
                        if !self.zeroed::<TOUCH>(slot, size, watch, others) {
                            return false;
                        }
                    }
                    REALLOC => {
                        let size = size_of(word, words, &mut at);
                        if !self.resize::<TOUCH>(slot, size, watch, others) {
                            return false;
                        }
                    }
                    ALIGNED => {
                        let (size, align_log2) = word::aligned(*words.add(at));
                        at += 1;
                        if !self.aligned::<TOUCH>(slot, size, 1 << align_log2, watch, others) {
                            return false;
                        }
                    }
                    WAIT => {
                        let generation = *words.add(at);
                        at += 1;
                        if self.blocks.generation(slot).load(std::sync::atomic::Ordering::Acquire)
                            != generation
                            && !others.wait(slot, generation)
                        {
                            return false;
                        }
                    }
                    TURN => {
                        if !others.turn(word::run(word)) {
                            return false;
                        }
                    }
                    PASS => others.pass(slot, word::size(word) == word::LAST),
                    START => {
                        if !others.start(slot) {
                            return false;
                        }
                    }
                    MARK => watch.mark(self.common, self),
                    _ => std::hint::unreachable_unchecked(),
                }
            }
        }
        true
    }

    /// Enters a new block in the tables. False when the manager returned none.
    #[inline(always)]
    unsafe fn made<const TOUCH: u8>(&self, slot: u32, block: *mut c_void, size: u64, watch: &mut W) -> bool {
        // Of 0 bytes a manager may give no block.
        if block.is_null() && size != 0 {
            return false;
        }
        // SAFETY: the caller guarantees the slot's use in the program's order; `malloc` just returned the block, of
        // this size.
        unsafe {
            if TOUCH > 0 {
                block
                    .cast::<u8>()
                    .write_bytes(pattern(slot), if block.is_null() { 0 } else { size as usize });
            }
            self.sizes.replace(slot, size);
            watch.made(self.common, block.cast(), size);
            self.blocks.set(slot, block.cast());
        }
        true
    }

    /// Calls `calloc`. False when something went wrong, which has been reported to `others`.
    #[inline(always)]
    unsafe fn zeroed<const TOUCH: u8>(
        &self,
        slot: u32,
        size: u64,
        watch: &mut W,
        others: &mut impl Relations,
    ) -> bool {
        // SAFETY: the caller guarantees the slot's use in the program's order.
        unsafe {
            let block = watch.call(Call::Allocate, || libc::calloc(1, size as usize));
            if TOUCH == 2 && !block.is_null() && !is_filled(block.cast(), size as usize, 0) {
                others.fail(format!("calloc(1, {size}) gave a block that is not zero"));
                return false;
            }
            self.made::<TOUCH>(slot, block, size, watch) || refused(others, "calloc", size)
        }
    }

    /// Calls `posix_memalign`. False when something went wrong, which has been reported to `others`.
    #[inline(always)]
    unsafe fn aligned<const TOUCH: u8>(
        &self,
        slot: u32,
        size: u64,
        align: usize,
        watch: &mut W,
        others: &mut impl Relations,
    ) -> bool {
        let mut block: *mut c_void = std::ptr::null_mut();
        // SAFETY: `block` is a live local that posix_memalign writes; the caller guarantees the slot's use in the
        // program's order.
        unsafe {
            let status =
                watch.call(Call::Allocate, || libc::posix_memalign(&mut block, align, size as usize));
            if status != 0 || block as usize & (align - 1) != 0 {
                others
                    .fail(format!("posix_memalign({align}, {size}) gave status {status}, address {block:p}"));
                return false;
            }
            self.made::<TOUCH>(slot, block, size, watch);
        }
        true
    }

    /// Frees a slot's block. False when its contents were changed.
    #[inline(always)]
    unsafe fn free<const TOUCH: u8>(&self, slot: u32, watch: &mut W) -> bool {
        // SAFETY: the caller guarantees the slot's use in the program's order; its block is live until `free`, which
        // accepts null.
        unsafe {
            let block = self.blocks.get(slot);
            let size = self.sizes.replace(slot, 0);
            if TOUCH == 2 && !block.is_null() && !is_filled(block, size as usize, pattern(slot)) {
                return false;
            }
            watch.call(Call::Free, || libc::free(block.cast()));
            watch.ended(self.common, block, size);
            // Not left in the table: a collector takes it for a root.
            self.blocks.set(slot, std::ptr::null_mut());
        }
        true
    }

    #[inline(always)]
    unsafe fn resize<const TOUCH: u8>(
        &self,
        slot: u32,
        size: u64,
        watch: &mut W,
        others: &mut impl Relations,
    ) -> bool {
        // SAFETY: the caller guarantees the slot's use in the program's order; its block is live until `realloc`, which
        // returns one of `size` bytes.
        unsafe {
            let old_block = self.blocks.get(slot);
            let block =
                watch.call(Call::Resize, || libc::realloc(old_block.cast(), size as usize)).cast::<u8>();
            if block.is_null() && size != 0 {
                return refused(others, "realloc", size);
            }
            let old = self.sizes.replace(slot, size);
            if TOUCH > 0 && !block.is_null() {
                let kept = old.min(size) as usize;
                if TOUCH == 2 && !is_filled(block, kept, pattern(slot)) {
                    return changed(others, slot);
                }
                block.add(kept).write_bytes(pattern(slot), size as usize - kept);
            }
            watch.resized(self.common, (old_block, old), (block, size));
            self.blocks.set(slot, block);
        }
        true
    }
}

impl<W: Watch, const GENERATIONS: bool> LiveTable for Executor<'_, W, GENERATIONS> {
    unsafe fn each(&self, visit: &mut dyn FnMut(u32, *mut u8, u64)) {
        for slot in 0..self.blocks.slots() {
            // SAFETY: the slot is in the table; the caller guarantees that no other thread writes it now.
            let (block, size) = unsafe { (self.blocks.get(slot), self.sizes.get(slot)) };
            if !block.is_null() {
                visit(slot, block, size);
            }
        }
    }
}

#[cold]
fn refused(others: &mut impl Relations, call: &str, size: u64) -> bool {
    let why = std::io::Error::last_os_error();
    others.fail(format!("{call} of {size} bytes failed ({why}), but succeeded in the recording"));
    false
}

#[cold]
fn changed(others: &mut impl Relations, slot: u32) -> bool {
    others.fail(format!(
        "a block in use changed its contents (slot {slot}): it was given out twice, reclaimed, or not copied by \
         realloc"
    ));
    false
}
