//! Samples calls.

use core::ffi::c_void;

use heaptoll_layer_core::sample::Taken;
use heaptoll_next::watched::{Call, Watch};
use heaptoll_next::{arena, forward};
use heaptoll_sampling::Random;

use crate::probes::Probes;
use crate::start::{Mode, mode};
use crate::thread::{Left, Sequence, count_down};
use crate::{SAMPLER, STACKS, next};

/// Samples calls.
pub struct Sample;

/// A sample point lies in the call's bytes.
const SAMPLED: u64 = 1;
/// The thread has just begun to count: whether one does is not known yet.
const BEGINS: u64 = 2;
/// Nothing is sampled.
const IDLE: u64 = 0;

/// A thread has passed its sample point, or counts for the first time: begins to count to the next one.
///
/// Distances are without memory: bytes that were counted while the layer did not sample make no difference to how far the
/// next point is, so that samples are right from the first on when it wakes.
fn count_again() -> u64 {
    match mode() {
        Mode::Starting => {
            Left::set(0);
            IDLE
        }
        Mode::Off => {
            Left::set(isize::MAX as usize);
            IDLE
        }
        Mode::On => {
            let begins = Sequence::get() == 0;
            let mut random = if begins { SAMPLER.random() } else { Random::new(Sequence::get() as u64) };
            let gap = random.gap(SAMPLER.control().mean_bytes());
            Sequence::set(random.state() as usize);
            Left::set(gap as usize - 1);
            if begins { BEGINS } else { SAMPLED }
        }
    }
}

/// A sample point may lie in an allocation.
fn sample(begun: u64, block: *mut c_void, bytes: usize) {
    let is_sampled = match begun {
        SAMPLED => true,
        BEGINS => count_down(bytes) && count_again() != IDLE,
        _ => false,
    };
    if !is_sampled || block.is_null() || arena::owns(block) || !SAMPLER.control().is_awake() {
        return;
    }
    let Some(records) = SAMPLER.records() else { return };
    let site = STACKS.site(|site, words| records.define(site, words));
    SAMPLER.allocated::<Probes>(records, block as usize, bytes, site);
}

impl Watch for Sample {
    type Before = Option<Taken>;

    #[inline(always)]
    fn fast_path_of(size: usize) -> bool {
        !count_down(size)
    }

    fn before_allocation() -> u64 {
        count_again()
    }

    fn after_allocation_slow(begun: u64, block: *mut c_void, size: usize, _: Call) {
        sample(begun, block, size);
    }

    #[inline(always)]
    fn forward_malloc(size: usize) -> *mut c_void {
        next::malloc(size)
    }

    /// Null has the group of the first addresses, which no block has: it is freed as any block.
    #[inline(always)]
    unsafe fn free(block: *mut c_void, _: bool) {
        if SAMPLER.may_hold(block as usize) {
            // SAFETY: the contract of `free_slow` is that of this function.
            return unsafe { free_slow(block) };
        }
        // SAFETY: blocks of the arena pass the filter, so that this one is the manager's or null.
        unsafe { next::free(block) }
    }

    #[inline(always)]
    fn before_resize(block: *mut c_void) -> Option<Taken> {
        if SAMPLER.may_hold(block as usize) { SAMPLER.take(block as usize) } else { None }
    }

    #[inline(always)]
    fn after_resize(block: *mut c_void, before: Option<Taken>, size: usize, new: *mut c_void) {
        if before.is_some() || count_down(size) {
            after_resize_slow(block, before, size, new);
        }
    }
}

/// Frees a block that may be a sampled one, or the arena's.
///
/// # Safety
/// `block` is null or a live block of this malloc family.
#[cold]
#[inline(never)]
unsafe fn free_slow(block: *mut c_void) {
    if let Some(taken) = SAMPLER.take(block as usize) {
        SAMPLER.freed::<Probes>(block as usize, taken);
    }
    // SAFETY: by this function's contract the block is live or null.
    unsafe { forward::free(block) }
}

/// A sampled block was resized, or a sample point lies in the new size.
#[cold]
#[inline(never)]
fn after_resize_slow(block: *mut c_void, before: Option<Taken>, size: usize, new: *mut c_void) {
    if let Some(taken) = before {
        if new.is_null() && size != 0 {
            SAMPLER.put_back(block as usize, taken);
        } else {
            SAMPLER.freed::<Probes>(block as usize, taken);
        }
        // Not counted yet.
        if !count_down(size) {
            return;
        }
    }
    sample(count_again(), new, size);
}
