//! What is told of each call.

use core::ffi::c_void;

use heaptoll_next::arena;
use heaptoll_next::watched::{Call, Watch};
use crate::start::{BITS, DETACHED, LATENCY, SITES, STARTING, mode, start};
use crate::thread::Word;
use crate::{RINGS, STACKS, clock, usable};

/// The thread's way into its ring.
type Producer = heaptoll_ring::Producer<'static, Word>;

/// Tells every call.
pub struct Record;

/// The mode in which a call began, and above its [`BITS`] the ticks of the clock. 0 in the short way, where a test of
/// it is all that is left of the mode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Begun(u64);

impl Begun {
    #[inline(always)]
    fn now() -> Begun {
        match mode() {
            0 => Begun(0),
            mode => Begun::long(mode),
        }
    }

    #[cold]
    #[inline(never)]
    fn long(mut mode: u64) -> Begun {
        if mode & STARTING != 0 {
            mode = start();
        }
        Begun(mode | if mode & LATENCY != 0 { clock::ticks() << BITS } else { 0 })
    }

    #[inline(always)]
    fn is_short(self) -> bool {
        self.0 == 0
    }

    fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    /// ns since then.
    fn elapsed(self) -> u32 {
        let ticks = (clock::ticks() << BITS).wrapping_sub(self.0 & !((1 << BITS) - 1));
        clock::ns(ticks >> BITS)
    }
}

/// The kind of a call in the ring: [`heaptoll_trace`]'s numbers.
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
fn tell_new(producer: &mut Producer, block: *mut c_void, size: usize, call: Call) {
    let usable = usable::of(block);
    match call {
        Call::Malloc => producer.alloc(block as usize, size, usable),
        call => producer.alloc_long(block as usize, size, usable, kind(call), align_log2(call)),
    }
}

impl Watch for Record {
    type Begun = Begun;
    type Before = (Begun, bool);
    type Giving = Begun;

    #[inline(always)]
    fn begins() -> Begun {
        Begun::now()
    }

    #[inline(always)]
    fn asked(begun: Begun, block: *mut c_void, size: usize, call: Call) {
        if !begun.is_short() || block.is_null() {
            return asked_long(begun, block, size, call);
        }
        if let Some(mut producer) = RINGS.thread() {
            tell_new(&mut producer, block, size, call);
        }
    }

    #[inline(always)]
    fn gives_back(block: *mut c_void, operator: bool) -> Option<Begun> {
        if mode() != 0 {
            return gives_back_long(block, operator);
        }
        if !arena::owns(block)
            && let Some(mut producer) = RINGS.thread()
        {
            producer.free(block as usize, operator);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn gave_back(begun: Begun) {
        let elapsed = begun.elapsed();
        if let Some(mut producer) = RINGS.thread() {
            producer.took(elapsed);
        }
    }

    #[inline(always)]
    fn resizes(block: *mut c_void) -> (Begun, bool) {
        // The mode first: the end must be told if and only if the beginning was.
        let mut begun = Begun::now();
        let mut told = false;
        if !begun.has(STARTING | DETACHED)
            && !arena::owns(block)
            && let Some(mut producer) = RINGS.thread()
        {
            producer.resize_begin(block as usize);
            told = true;
        }
        if !begun.is_short() {
            // The time that telling took is not the call's.
            begun = Begun::now();
        }
        (begun, told)
    }

    #[inline(always)]
    fn resized(block: *mut c_void, (begun, told): (Begun, bool), size: usize, new: *mut c_void) {
        if !told || !begun.is_short() {
            return resized_long(block, begun, told, size, new);
        }
        if let Some(mut producer) = RINGS.thread() {
            let usable = if new.is_null() { 0 } else { usable::of(new) };
            producer.resize_end(new as usize, size, usable);
        }
    }
}

/// A call that gave nothing, or is told with latency or site, or not at all.
#[cold]
#[inline(never)]
fn asked_long(begun: Begun, block: *mut c_void, size: usize, call: Call) {
    if begun.has(STARTING | DETACHED) || arena::owns(block) {
        return;
    }
    let Some(mut producer) = extras(begun) else { return };
    if block.is_null() {
        producer.failed(kind(call), size);
    } else {
        tell_new(&mut producer, block, size, call);
    }
}

#[cold]
#[inline(never)]
fn gives_back_long(block: *mut c_void, operator: bool) -> Option<Begun> {
    let begun = Begun::now();
    if begun.has(STARTING | DETACHED) || arena::owns(block) {
        return None;
    }
    RINGS.thread()?.free(block as usize, operator);
    // The time that telling took is not the call's.
    begun.has(LATENCY).then(Begun::now)
}

#[cold]
#[inline(never)]
fn resized_long(block: *mut c_void, begun: Begun, told: bool, size: usize, new: *mut c_void) {
    if told {
        if let Some(mut producer) = extras(begun) {
            let usable = if new.is_null() { 0 } else { usable::of(new) };
            producer.resize_end(new as usize, size, usable);
        }
    } else if arena::owns(block) && !new.is_null() {
        // Out of the arena, which is nobody's business: for the program's history it begins here.
        asked_long(begun, new, size, Call::Malloc);
    }
}

/// The thread's producer, which has been told what is to be told with the next event: how long the call took until
/// now, and whence it came.
fn extras(begun: Begun) -> Option<Producer> {
    let elapsed = if begun.has(LATENCY) { begun.elapsed().max(1) } else { 0 };
    let mut producer = RINGS.thread()?;
    producer.latency(elapsed);
    if begun.has(SITES) {
        let site = STACKS.site(|site, frames| {
            if let Some(mut producer) = RINGS.thread() {
                producer.define_site(site, frames);
            }
        });
        producer.site(site);
    }
    Some(producer)
}
