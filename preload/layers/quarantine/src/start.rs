//! How the quarantine starts: at the first free or by the constructor, whichever is earlier; and how threads begin and
//! end in it.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};

use heaptoll_layer_core::quarantine::delay::Enters;
use heaptoll_layer_core::quarantine::settings::{ALLOWED, Settings};
use heaptoll_layer_core::quarantine::thread::Thread;
use heaptoll_next::family::{Free, UsableSize, fatal};
use heaptoll_next::settings::{refuse, variable};
use heaptoll_runtime::{AtFork, at_fork};

use crate::{QUARANTINE, check, word};

const VARIABLE: &core::ffi::CStr = c"HEAPTOLL_QUARANTINE";

const UNKNOWN: u8 = 0;
const STARTING: u8 = 1;
const READY: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// `realloc` is the manager's.
static MANAGER_RESIZES: AtomicBool = AtomicBool::new(false);
/// The key whose destructor runs when a thread ends.
static KEY: AtomicU32 = AtomicU32::new(0);

/// The record of a thread that has none: one that has ended but for what it still frees, or is entering. What it frees
/// goes straight on.
static NOWHERE: Thread = Thread::nowhere();

/// Whether `realloc` holds the old block back. False, too, before the settings are known.
#[inline(always)]
pub fn delays_realloc() -> bool {
    STATE.load(Acquire) == READY && !MANAGER_RESIZES.load(Relaxed)
}

/// Starts, once; whether it has been done.
#[cold]
#[inline(never)]
pub fn start() -> bool {
    if STATE.compare_exchange(UNKNOWN, STARTING, AcqRel, Acquire).is_err() {
        return STATE.load(Acquire) == READY;
    }
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let settings = match variable(VARIABLE).map_or(Ok(Settings::NONE), Settings::read) {
        Ok(settings) => settings,
        Err(wrong) => refuse(VARIABLE, wrong, ALLOWED),
    };
    // There is a block to free, or this is the constructor, which finds the family by itself: dlsym can be called.
    let Some(family) = heaptoll_next::next() else {
        STATE.store(UNKNOWN, Release);
        return false;
    };
    let Some(usable_size) = family.usable_size else {
        fatal(c"heaptoll: the quarantine needs malloc_usable_size, which the next manager does not export: take another manager\n");
    };
    // SAFETY: the name is a C string. A failing dlsym allocates its message, which the manager serves.
    let single_threaded = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    let (usable_size, free, enters): (UsableSize, Free, Option<Enters>) = if settings.check {
        check::prepare(family, usable_size, settings.abort);
        (check::usable_size, check::leaves, Some(check::enters))
    } else {
        (usable_size, family.free, None)
    };
    QUARANTINE.prepare(&settings, usable_size, free, enters, single_threaded.cast());
    MANAGER_RESIZES.store(!settings.delay_realloc, Relaxed);
    let mut key = 0;
    // SAFETY: the function is of this object, which is never unloaded.
    let keyless = unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) != 0 };
    if keyless || at_fork::<Forks>() != 0 {
        fatal(c"heaptoll: the quarantine cannot register its hooks for the ends of threads and for forks: the C library has no memory for them\n");
    }
    KEY.store(key, Relaxed);
    STATE.store(READY, Release);
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
    true
}

/// The calling thread's record, which it may get now; `None` while the layer starts.
#[cold]
#[inline(never)]
pub fn enter() -> Option<&'static Thread> {
    if STATE.load(Acquire) != READY && !start() {
        return None;
    }
    // Until it has one: what is called here may free.
    word::set(&NOWHERE);
    let Some(thread) = QUARANTINE.enter() else {
        word::set(ptr::null());
        return Some(&NOWHERE);
    };
    // SAFETY: errno's address is valid for the calling thread; the key was made by `start`.
    unsafe {
        let errno = *libc::__errno_location();
        libc::pthread_setspecific(KEY.load(Relaxed), ptr::from_ref(thread).cast());
        *libc::__errno_location() = errno;
    }
    word::set(thread);
    Some(thread)
}

unsafe extern "C" fn thread_ends(slot: *mut c_void) {
    word::set(&NOWHERE);
    // SAFETY: the record that `enter` set for this thread, whose word no longer refers to it.
    unsafe { QUARANTINE.leave(&*slot.cast::<Thread>()) };
}

struct Forks;

impl AtFork for Forks {
    fn before() {
        check::before_fork();
    }

    fn in_parent() {
        check::after_fork();
    }

    fn in_child() {
        check::after_fork();
        let word = word::get();
        // A thread that has not freed anything yet may get a record now: what others held needs a thread that holds it.
        // One that has ended leaves it where it is.
        // SAFETY: the word is null or the address of a record, and records are never unmapped.
        match unsafe { word.as_ref() }.or_else(enter) {
            Some(own) if !ptr::eq(own, &NOWHERE) => QUARANTINE.after_fork(own),
            _ => {}
        }
    }
}

extern "C" fn at_start() {
    start();
}

extern "C" fn at_end() {
    if STATE.load(Acquire) == READY {
        if check::is_on() {
            check::at_end();
        }
        QUARANTINE.report_stats();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;
