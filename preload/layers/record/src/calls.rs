//! Records each call.

use core::ffi::c_void;

use heaptoll_next::arena;
use heaptoll_next::watched::{Call, Watch};
use heaptoll_process::tsc as clock;

use crate::start::{DETACHED, LATENCY, SITES, STARTING, detach, mode, start};
use crate::thread::Word;
use crate::{RINGS, STACKS, usable};

/// Records every call.
pub struct Record;

/// The thread's access to its ring.
type Producer = heaptoll_alloc_ring::Producer<'static, Word>;

/// The largest size that the ring can hold: 60 bits. Only calls that fail can request more. (Truncated instead, 2^60
/// would be 0, and a failed `realloc` would be one that frees.)
const MOST: usize = (1 << 60) - 1;

/// The kind of a call in the ring, by the numbers of a trace's kinds.
#[inline(always)]
const fn kind(call: Call) -> u8 {
    match call {
        Call::Malloc => 0,
        Call::Calloc => 1,
        Call::Aligned { .. } => 2,
        Call::New | Call::AlignedNew { .. } => 3,
    }
}

/// The logarithm of an alignment; one that is not a power of two is rounded up, as by glibc.
#[inline(always)]
fn align_log2(call: Call) -> u8 {
    match call.align() {
        Some(align) if align > 1 => (usize::BITS - (align - 1).leading_zeros()) as u8,
        _ => 0,
    }
}

#[inline(always)]
fn record_new(producer: &mut Producer, block: *mut c_void, size: usize, usable: usize, call: Call) {
    match call {
        Call::Malloc => producer.alloc(block as usize, size, usable),
        call => producer.alloc_long(block as usize, size, usable, kind(call), align_log2(call)),
    }
}

/// The mode, if events are recorded; `None` when detached, and while this thread or another determines the mode.
fn recording_mode() -> Option<u64> {
    let mut mode = mode();
    if mode & STARTING != 0 {
        mode = start();
    }
    (mode & (STARTING | DETACHED) == 0).then_some(mode)
}

/// The time stamp from which a latency counts; 0 when latencies are not wanted.
fn stamp(mode: u64) -> u64 {
    if mode & LATENCY != 0 { clock::fenced_ticks() } else { 0 }
}

/// The duration of a call that began at `stamp`, ns; at least 1, since 0 means "unknown".
fn since(stamp: u64) -> u32 {
    if stamp == 0 { 0 } else { clock::ns(stamp, clock::fenced_ticks()).max(1) }
}

/// The thread's producer, with the latency and the site of the next event.
fn annotated_producer(latency: u32) -> Option<Producer> {
    let mut producer = RINGS.thread()?;
    producer.latency(latency);
    if mode() & SITES != 0 {
        let site = STACKS.site(|site, frames| {
            if let Some(mut producer) = RINGS.thread() {
                producer.define_site(site, frames);
            }
        });
        producer.site(site);
    }
    Some(producer)
}

/// Whether the block is of the layer's own calls.
fn is_own(block: *mut c_void) -> bool {
    arena::owns(block) && !arena::is_programs(block)
}

/// Detaches the layer if the rings have detached: an event had no ring.
#[cold]
#[inline(never)]
fn no_ring() {
    if RINGS.detached() {
        detach();
    }
}

/// State from the beginning of a resize to its end.
pub struct Resizing {
    /// Whether its beginning was recorded, so its end must be.
    recorded: bool,
    stamp: u64,
}

impl Watch for Record {
    type Before = Resizing;

    /// It queries usable sizes, and facts for the tool.
    const QUERIES: bool = true;

    #[inline(always)]
    fn fast_path() -> bool {
        mode() == 0
    }

    /// A free has no call stack.
    #[inline(always)]
    fn free_fast_path() -> bool {
        mode() & !SITES == 0
    }

    #[inline(always)]
    fn bypasses() -> bool {
        mode() == DETACHED
    }

    #[inline(always)]
    fn query(block: *mut c_void) -> usize {
        usable::query(block)
    }

    #[inline(always)]
    fn after_allocation(block: *mut c_void, usable: usize, size: usize, call: Call) -> *mut c_void {
        if block.is_null() {
            return failed(size, kind(call));
        }
        if let Some(mut producer) = RINGS.thread() {
            record_new(&mut producer, block, size, usable, call);
        } else {
            no_ring();
        }
        block
    }

    #[inline(always)]
    fn before_free(block: *mut c_void, operator: bool) -> bool {
        if arena::owns(block) {
            return false;
        }
        if let Some(mut producer) = RINGS.thread() {
            producer.free(block as usize, operator);
        } else {
            no_ring();
        }
        true
    }

    #[inline(always)]
    fn before_resize(block: *mut c_void) -> Resizing {
        if mode() != 0 || arena::owns(block) {
            return before_resize_slow(block);
        }
        let recorded = match RINGS.thread() {
            Some(mut producer) => {
                producer.resize_begin(block as usize);
                true
            }
            None => false,
        };
        Resizing { recorded, stamp: 0 }
    }

    #[inline(always)]
    fn after_resize(block: *mut c_void, before: Resizing, size: usize, new: *mut c_void) {
        if mode() != 0 || !before.recorded {
            return after_resize_slow(block, before, size, new);
        }
        let usable = if new.is_null() { 0 } else { usable::size_of_block(new) };
        if let Some(mut producer) = RINGS.thread() {
            producer.resize_end(new as usize, size.min(MOST), usable);
        }
    }

    fn before_allocation() -> u64 {
        recording_mode().map_or(0, stamp)
    }

    /// Inline, so that a walk passes one frame of the layer less.
    #[inline(always)]
    fn after_allocation_slow(begun: u64, block: *mut c_void, size: usize, call: Call) {
        let latency = since(begun);
        if recording_mode().is_none() || arena::owns(block) {
            return;
        }
        let Some(mut producer) = annotated_producer(latency) else { return };
        if block.is_null() {
            producer.failed(kind(call), size.min(MOST));
        } else {
            record_new(&mut producer, block, size, usable::size_of_block(block), call);
        }
    }

    fn before_free_slow(block: *mut c_void, operator: bool) -> u64 {
        let Some(mode) = recording_mode().filter(|_| !is_own(block)) else { return 0 };
        let Some(mut producer) = RINGS.thread() else { return 0 };
        producer.free(block as usize, operator);
        // The latency excludes the time to record the event.
        stamp(mode)
    }

    fn after_free(begun: u64) {
        if begun != 0 {
            let latency = since(begun);
            if let Some(mut producer) = RINGS.thread() {
                producer.took(latency);
            }
        }
    }
}

#[cold]
#[inline(never)]
fn failed(size: usize, kind: u8) -> *mut c_void {
    if let Some(mut producer) = RINGS.thread() {
        producer.failed(kind, size.min(MOST));
    }
    core::ptr::null_mut()
}

#[cold]
#[inline(never)]
fn before_resize_slow(block: *mut c_void) -> Resizing {
    let Some(mode) = recording_mode().filter(|_| !is_own(block)) else {
        return Resizing { recorded: false, stamp: 0 };
    };
    let recorded = match RINGS.thread() {
        Some(mut producer) => {
            producer.resize_begin(block as usize);
            true
        }
        None => false,
    };
    // The latency excludes the time to record the event.
    Resizing { recorded, stamp: stamp(mode) }
}

#[cold]
#[inline(never)]
fn after_resize_slow(block: *mut c_void, before: Resizing, size: usize, new: *mut c_void) {
    let latency = since(before.stamp);
    if before.recorded {
        if let Some(mut producer) = annotated_producer(latency) {
            let usable = if new.is_null() { 0 } else { usable::size_of_block(new) };
            producer.resize_end(new as usize, size.min(MOST), usable);
        }
    } else if is_own(block) && !new.is_null() {
        // It moved out of the arena, where it was the layer's own: to the trace it is a new block.
        Record::after_allocation_slow(0, new, size, Call::Malloc);
    }
}
