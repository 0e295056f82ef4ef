//! The layer's mode, which is determined at the first call or by the constructor, whichever is earlier.

use core::sync::atomic::{AtomicU32, Ordering};

use heaptoll_next::arena;
use heaptoll_next::ending::Ending;
use heaptoll_next::family::path_of;
use heaptoll_next::loader::is_relocating;
use heaptoll_next::settings::variable;
use heaptoll_sampling::layout::VARIABLE;

use crate::{SAMPLER, STACKS, next};

/// Bytes of the arena that other threads may still take which were there while the family was searched for.
const FURTHER_ARENA: usize = 64 << 10;

/// What the layer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is being determined, by this thread or another.
    Starting,
    /// There is no tool: the layer forwards.
    Off,
    /// It counts, and samples while it is awake.
    On,
}

const NEW: u32 = 0;
const STARTING: u32 = 1;
const OFF: u32 = 2;
const ON: u32 = 3;

static MODE: AtomicU32 = AtomicU32::new(NEW);

/// The mode; the first call determines it.
#[inline]
pub fn mode() -> Mode {
    match MODE.load(Ordering::Acquire) {
        NEW => start(),
        STARTING => Mode::Starting,
        OFF => Mode::Off,
        _ => Mode::On,
    }
}

/// Attaches to the tool, once.
#[cold]
#[inline(never)]
fn start() -> Mode {
    if is_relocating() || MODE.compare_exchange(NEW, STARTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return Mode::Starting;
    }
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    // dlsym allocates: those calls find the mode being determined.
    let family = heaptoll_next::next();
    if let Some(family) = family {
        let arena = arena::used();
        SAMPLER.always_hold(arena.start..arena.end + FURTHER_ARENA);
        next::set(family);
    }
    let is_on = family
        .and_then(path_of)
        .is_some_and(|object| variable(VARIABLE).is_some_and(|folder| SAMPLER.attach(folder, object)))
        && STACKS.prepare(at_start as *const () as usize);
    if is_on {
        heaptoll_next::ending::prepare(at_end, false);
    }
    MODE.store(if is_on { ON } else { OFF }, Ordering::Release);
    // SAFETY: `__errno_location` returns the address of the calling thread's errno.
    unsafe { *libc::__errno_location() = errno };
    if is_on { Mode::On } else { Mode::Off }
}

fn at_end(ending: Ending) {
    if ending == Ending::Handlers {
        SAMPLER.exit_begins();
    }
}

extern "C" fn at_start() {
    mode();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;
