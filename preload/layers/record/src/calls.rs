//! What is told of each call.

use core::ffi::c_void;

use heaptoll_clock as clock;
use heaptoll_next::arena;
use heaptoll_next::watched::{Call, Watch};

use crate::start::{DETACHED, LATENCY, SITES, STARTING, detach, mode, start};
use crate::thread::Word;
use crate::{RINGS, STACKS, usable};

/// Tells every call.
pub struct Record;

/// The thread's way into its ring.
type Producer = heaptoll_ring::Producer<'static, Word>;

/// The largest size that the ring can tell: 60 bits, of which only calls can be larger that give nothing. (Cut off
/// instead, 2^60 would be 0, and a `realloc` that failed one that frees.)
const MOST: usize = (1 << 60) - 1;

/// The kind of a call in the ring: the numbers of a trace's kinds.
#[inline(always)]
const fn kind(call: Call) -> u8 {
    match call {
        Call::Malloc => 0,
        Call::Calloc => 1,
        Call::Aligned { .. } => 2,
        Call::New | Call::AlignedNew { .. } => 3,
    }
}

/// What an alignment comes to: one that is no power of two is rounded up, as glibc does.
#[inline(always)]
fn align_log2(call: Call) -> u8 {
    match call.align() {
        Some(align) if align > 1 => (usize::BITS - (align - 1).leading_zeros()) as u8,
        _ => 0,
    }
}

#[inline(always)]
fn tell_new(producer: &mut Producer, block: *mut c_void, size: usize, usable: usize, call: Call) {
    match call {
        Call::Malloc => producer.alloc(block as usize, size, usable),
        call => producer.alloc_long(block as usize, size, usable, kind(call), align_log2(call)),
    }
}

/// The mode, once it is known whether there is anybody to tell; `None` while it is being found out, by this thread or
/// by another, and when there is nobody.
fn telling() -> Option<u64> {
    let mut mode = mode();
    if mode & STARTING != 0 {
        mode = start();
    }
    (mode & (STARTING | DETACHED) == 0).then_some(mode)
}

/// A point in time to begin from; 0 when latencies are not wanted.
fn stamp(mode: u64) -> u64 {
    if mode & LATENCY != 0 { clock::fenced_ticks() } else { 0 }
}

/// The whole of the time that a call took which began then, ns, and not 0, which stands for "unknown".
fn since(stamp: u64) -> u32 {
    if stamp == 0 { 0 } else { clock::ns(stamp, clock::fenced_ticks()).max(1) }
}

/// The thread's producer, told what is to be told with the next event: how long it took, and whence it came.
fn extras(latency: u32) -> Option<Producer> {
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

/// There was nobody to tell an event.
#[cold]
#[inline(never)]
fn unheard() {
    if RINGS.detached() {
        detach();
    }
}

/// What is kept from the beginning of a resize to its end.
pub struct Resizing {
    /// Its beginning was told, so its end will be.
    told: bool,
    stamp: u64,
}

impl Watch for Record {
    type Before = Resizing;

    #[inline(always)]
    fn short() -> bool {
        mode() == 0
    }

    #[inline(always)]
    fn past() -> bool {
        mode() == DETACHED
    }

    #[inline(always)]
    fn asked(block: *mut c_void, size: usize, call: Call) -> *mut c_void {
        if block.is_null() {
            return failed(size, kind(call));
        }
        let usable = usable::of(block);
        if let Some(mut producer) = RINGS.thread() {
            tell_new(&mut producer, block, size, usable, call);
        } else {
            unheard();
        }
        block
    }

    #[inline(always)]
    fn gives_back(block: *mut c_void, operator: bool) -> bool {
        if arena::owns(block) {
            return false;
        }
        if let Some(mut producer) = RINGS.thread() {
            producer.free(block as usize, operator);
        } else {
            unheard();
        }
        true
    }

    #[inline(always)]
    fn resizes(block: *mut c_void) -> Resizing {
        if mode() != 0 || arena::owns(block) {
            return resizes_long(block);
        }
        let told = match RINGS.thread() {
            Some(mut producer) => {
                producer.resize_begin(block as usize);
                true
            }
            None => false,
        };
        Resizing { told, stamp: 0 }
    }

    #[inline(always)]
    fn resized(block: *mut c_void, before: Resizing, size: usize, new: *mut c_void) {
        if mode() != 0 || !before.told {
            return resized_long(block, before, size, new);
        }
        let usable = if new.is_null() { 0 } else { usable::of(new) };
        if let Some(mut producer) = RINGS.thread() {
            producer.resize_end(new as usize, size.min(MOST), usable);
        }
    }

    fn begins() -> u64 {
        telling().map_or(0, stamp)
    }

    fn asked_long(begun: u64, block: *mut c_void, size: usize, call: Call) {
        let latency = since(begun);
        if telling().is_none() || arena::owns(block) {
            return;
        }
        let Some(mut producer) = extras(latency) else { return };
        if block.is_null() {
            producer.failed(kind(call), size.min(MOST));
        } else {
            tell_new(&mut producer, block, size, usable::of(block), call);
        }
    }

    fn gives_back_long(block: *mut c_void, operator: bool) -> u64 {
        let Some(mode) = telling().filter(|_| !arena::owns(block)) else { return 0 };
        let Some(mut producer) = RINGS.thread() else { return 0 };
        producer.free(block as usize, operator);
        // The time that telling took is not the call's.
        stamp(mode)
    }

    fn gave_back(begun: u64) {
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
fn resizes_long(block: *mut c_void) -> Resizing {
    let Some(mode) = telling().filter(|_| !arena::owns(block)) else {
        return Resizing { told: false, stamp: 0 };
    };
    let told = match RINGS.thread() {
        Some(mut producer) => {
            producer.resize_begin(block as usize);
            true
        }
        None => false,
    };
    // The time that telling took is not the call's.
    Resizing { told, stamp: stamp(mode) }
}

#[cold]
#[inline(never)]
fn resized_long(block: *mut c_void, before: Resizing, size: usize, new: *mut c_void) {
    let latency = since(before.stamp);
    if before.told {
        if let Some(mut producer) = extras(latency) {
            let usable = if new.is_null() { 0 } else { usable::of(new) };
            producer.resize_end(new as usize, size.min(MOST), usable);
        }
    } else if arena::owns(block) && !new.is_null() {
        // Out of the arena, which is nobody's business: for the program's history it begins here.
        Record::asked_long(0, new, size, Call::Malloc);
    }
}
