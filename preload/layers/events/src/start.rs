//! Finding the file and the managers, once; claiming the process's entry, and after each fork another.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use heaptoll_events::layout::VARIABLE;
use heaptoll_events::mapped::Mapped;

use crate::listen;
use crate::process::{current as process, prepare};
use crate::thread::{self, Thread};

const NEW: u32 = 0;
const STARTING: u32 = 1;
/// There is nowhere to write.
const DETACHED: u32 = 2;
const ATTACHED: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(NEW);
static FILE: Kept = Kept(UnsafeCell::new(MaybeUninit::uninit()));

struct Kept(UnsafeCell<MaybeUninit<(Mapped, Option<libc::pthread_key_t>)>>);

// SAFETY: written once, by the thread that moved `STATE` from NEW to STARTING; read only after ATTACHED, which is stored
// with release and loaded with acquire.
unsafe impl Sync for Kept {}

fn kept() -> Option<&'static (Mapped, Option<libc::pthread_key_t>)> {
    // SAFETY: ATTACHED is stored after it was written, for good.
    (STATE.load(Ordering::Acquire) == ATTACHED).then(|| unsafe { (*FILE.0.get()).assume_init_ref() })
}

/// The file; `None` when there is none, or while it is being looked for. Libraries' constructors may come before this
/// layer's.
pub fn file() -> Option<&'static Mapped> {
    if STATE.load(Ordering::Acquire) == NEW {
        start();
    }
    kept().map(|(file, _)| file)
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

/// Runs once, before `main` and after the constructors of the objects behind: their managers can be listened to.
extern "C" fn at_start() {
    if let Some(file) = file()
        && let Some(entry) = entry(file)
    {
        let (heard, unheard) = listen::to_all();
        file.hears(entry - 1, heard, unheard);
    }
}

fn start() {
    if STATE.compare_exchange(NEW, STARTING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    heaptoll_clock::choose();
    let attached = attach().is_some();
    STATE.store(if attached { ATTACHED } else { DETACHED }, Ordering::Release);
}

fn attach() -> Option<()> {
    // SAFETY: the name is a C string; what getenv gives is one.
    let path = unsafe {
        let path = libc::getenv(VARIABLE.as_ptr());
        if path.is_null() {
            return None;
        }
        core::ffi::CStr::from_ptr(path)
    };
    let file = Mapped::open(path)?;
    if !prepare() {
        return None;
    }
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: a valid place for the key; the function may be called at the end of any thread.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0;
    // SAFETY: this thread alone is in STARTING, nobody reads before ATTACHED.
    unsafe { (*FILE.0.get()).write((file, made.then_some(key))) };
    Some(())
}

/// The number of this process's entry, and 1; claims it at the process's first event. `None` when there is none left.
pub fn entry(file: &Mapped) -> Option<u32> {
    let known = process().entry.load(Ordering::Acquire);
    if known != 0 {
        return Some(known);
    }
    if process().without.load(Ordering::Relaxed) != 0 {
        return None;
    }
    let (heard, unheard) = listen::heard();
    let Some(claimed) = file.claim_process(heard, unheard) else {
        process().without.store(1, Ordering::Relaxed);
        return None;
    };
    match process().entry.compare_exchange(0, claimed + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(claimed + 1),
        Err(other) => {
            file.abandon_process(claimed);
            Some(other)
        }
    }
}

/// Has the rest of the thread's chunk kept when it ends.
pub fn at_thread_end() {
    if let Some((_, Some(key))) = kept() {
        // Where this fails, the rest of the chunk stays empty.
        // SAFETY: a key that was made.
        unsafe { libc::pthread_setspecific(*key, ptr::without_provenance::<c_void>(1)) };
    }
}

unsafe extern "C" fn ended(_: *mut c_void) {
    // SAFETY: the thread's own, still there.
    let thread = unsafe { &mut *thread::current() };
    let own = core::mem::replace(thread, Thread::NONE);
    if own.next != own.end && own.process == process().entry.load(Ordering::Relaxed) {
        process().keep(own.next, own.end);
    }
}
