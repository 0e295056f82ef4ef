//! The layer's mode, which is determined at the first call or by the constructor, whichever is earlier.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heaptoll_next::ending::Ending;
use heaptoll_next::family::path_of;
use heaptoll_next::loader::is_relocating;
use heaptoll_process::tsc as clock;

use crate::{RINGS, STACKS, early, execs, facts, limits, maps, usable};

/// A bit of the mode: it is not determined yet. Calls made meanwhile are taken for the layer's own, and not recorded.
pub const STARTING: u64 = 1;
/// There is no tool to report to.
pub const DETACHED: u64 = 2;
/// The time that calls take is wanted.
pub const LATENCY: u64 = 4;
/// Call stacks are wanted.
pub const SITES: u64 = 8;

/// 0: record, by the fast path.
static MODE: AtomicU64 = AtomicU64::new(STARTING);
static BEGUN: AtomicBool = AtomicBool::new(false);

/// The mode.
#[inline(always)]
pub fn mode() -> u64 {
    // Acquire: when the mode has neither STARTING nor DETACHED the next family is known.
    MODE.load(Ordering::Acquire)
}

/// Attaches to the tool, once, and returns the mode. Libraries' constructors run before this layer's, and allocate.
#[cold]
#[inline(never)]
pub fn start() -> u64 {
    if is_relocating() || BEGUN.swap(true, Ordering::AcqRel) {
        return mode();
    }
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    // A failing dlsym allocates its message. Resolved here, while there is one thread, rather than at some thread's
    // first call.
    let family = heaptoll_next::next();
    let mut mode = DETACHED;
    if let Some(object) = family.and_then(path_of) {
        RINGS.served_by(object);
    }
    if let Some(family) = family
        && RINGS.attach()
    {
        let flags = RINGS.flags();
        usable::prepare(family);
        execs::prepare();
        limits::prepare();
        mode = 0;
        if flags.latency {
            clock::choose();
            clock::compare();
            mode |= LATENCY;
        }
        if flags.sites {
            if STACKS.prepare(at_start as *const () as usize) {
                mode |= SITES;
            } else {
                RINGS.without_stacks();
            }
        }
        if flags.ledger {
            facts::prepare(family);
            RINGS.answer_with(facts::answer);
        }
        maps::prepare(flags.ledger && mode & SITES != 0);
        heaptoll_next::ending::prepare(at_end, flags.ledger);
    }
    if mode & DETACHED == 0 {
        early::record();
    }
    MODE.store(mode, Ordering::Release);
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = errno };
    mode
}

/// Where memory is read, it is read once more before it goes: a program that only grows is largest at its end.
fn at_end(ending: Ending) {
    if mode() & (STARTING | DETACHED) != 0 {
        return;
    }
    if ending == Ending::Handlers {
        RINGS.exit_begins();
    }
    if RINGS.flags().ledger {
        RINGS.end(ending == Ending::Handlers);
    }
}

/// Detaches: from now on calls bypass the layer.
pub fn detach() {
    MODE.store(DETACHED, Ordering::Release);
}

extern "C" fn at_start() {
    start();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;
