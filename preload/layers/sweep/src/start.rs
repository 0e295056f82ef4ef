//! How the layer starts, at the first call or by the constructor, whichever is earlier; threads' ends, fork and exit.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_layer_core::sweep::cores;
use heaptoll_layer_core::sweep::settings::Settings;
use heaptoll_next::{family, settings};
use heaptoll_runtime::{ThreadEnd, at_fork, prepare_barriers};

use crate::collection::{COLLECTION, PATIENCE_MS, report_used};
use crate::forks::Forks;
use crate::shared::{BUDGET, HONOUR, LAZY, LIMIT_PAGES, REPORTER, WORLD, has_started, started};
use crate::{LAYER, freed, gate, mappings};

/// The manager is the C library's.
static GLIBC: AtomicBool = AtomicBool::new(false);

static BEGUN: AtomicBool = AtomicBool::new(false);
static THREAD_END: ThreadEnd = ThreadEnd::new(thread_ends);

/// The signal when the usual one is another collector's, after the layer: each would pass on to the other what is
/// neither's, for ever. This is the other one of the C library's own, by which it cancels threads, and its handler
/// recognises its own signals too; programs do not block it by accident either.
const OTHER_SIGNAL: c_int = 32;

/// Starts the layer, once. False while that is going on.
#[cold]
#[inline(never)]
pub fn start() -> bool {
    if BEGUN.swap(true, Ordering::AcqRel) {
        return has_started();
    }
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let break_start = mappings::break_now();
    if heaptoll_next::next().is_none() {
        // Another thread searches for it: unlikely, as there are none before the first call.
        BEGUN.store(false, Ordering::Release);
        return false;
    }
    let text = settings::variable(LAYER.variable).unwrap_or_default();
    let settings = match Settings::read(&LAYER, text) {
        Ok(settings) => settings,
        Err(wrong) => settings::refuse(LAYER.variable, wrong, LAYER.allowed),
    };
    let glibc = mappings::find_manager();
    GLIBC.store(glibc, Ordering::Relaxed);
    HONOUR.store(settings.honour, Ordering::Relaxed);
    LAZY.store(settings.lazy, Ordering::Relaxed);
    LIMIT_PAGES.store(settings.heap.map_or(usize::MAX, |bytes| bytes / 4096), Ordering::Relaxed);
    prepare_barriers();
    let signal = family::symbol(c"tithe_malloc").map(|_| OTHER_SIGNAL);
    WORLD.start(signal, PATIENCE_MS, cores());
    let mut collection = COLLECTION.lock();
    collection.managed.break_start = break_start;
    collection.managed.glibc = glibc;
    collection.configure(settings);
    drop(collection);
    if at_fork::<Forks>() != 0 || THREAD_END.prepare().is_err() {
        family::fatal(
            c"heaptoll: a layer that reads memory cannot register its hooks for fork and for the ends of threads\n",
        );
    }
    let _ = REPORTER.slot();
    started();
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
    true
}

/// A thread calls the layer for the first time; it is inside.
#[cold]
pub fn thread_begins() {
    // Before the start there are no other threads, and the main thread's end is rarely the process's.
    if has_started() {
        let _ = THREAD_END.arm(ThreadEnd::ROUNDS as *mut c_void);
    }
}

/// A thread ends. The C library calls this in each round that it makes over such hooks; after the last, and after what
/// other hooks do in it, its own malloc frees what it has for the thread, by calls that do not go through the layer.
/// What another manager does then are hooks of its own ([`crate::thread_exit`]).
unsafe extern "C" fn thread_ends(rounds: *mut c_void) {
    let left = rounds as usize - 1;
    if (left == 0 || !THREAD_END.arm(left as *mut c_void)) && GLIBC.load(Ordering::Relaxed) {
        gate::end();
    }
}

extern "C" fn at_start() {
    start();
    BUDGET.fetch_max(1, Ordering::Relaxed);
}

extern "C" fn at_exit() {
    if !has_started() {
        return;
    }
    // The manager's own exit takes its locks without the layer.
    if let Some(mut collection) = COLLECTION.try_lock() {
        collection.over = true;
        // What came since the last collection, or without any, is not reported yet.
        report_used();
        if LAYER.guards {
            freed::at_end();
        }
    }
}

heaptoll_runtime::at_load_and_exit!(at_start, at_exit);
