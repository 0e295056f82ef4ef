//! The file, opened once, and the process's entry in it: another after each fork.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use heaptoll_event_log::layout::VARIABLE;
use heaptoll_event_log::mapped::Mapped;

use crate::observed;
use crate::process::{current as process, prepare};
use crate::thread::{self, Thread};

const NEW: u32 = 0;
const STARTING: u32 = 1;
/// There is no file.
const DETACHED: u32 = 2;
const ATTACHED: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(NEW);
static FILE: Cell = Cell(UnsafeCell::new(MaybeUninit::uninit()));

struct Cell(UnsafeCell<MaybeUninit<(Mapped, Option<libc::pthread_key_t>)>>);

// SAFETY: `attach` writes it once, on the thread that moved `STATE` from NEW to STARTING; `attached` reads it only
// after ATTACHED, which is stored with release and loaded with acquire.
unsafe impl Sync for Cell {}

fn attached() -> Option<&'static (Mapped, Option<libc::pthread_key_t>)> {
    // SAFETY: `open` stores ATTACHED only after `attach` has written the cell, which is never written again.
    (STATE.load(Ordering::Acquire) == ATTACHED).then(|| unsafe { (*FILE.0.get()).assume_init_ref() })
}

/// The file; `None` when there is none, or while it is being opened. Libraries' constructors may run before this
/// layer's.
pub fn file() -> Option<&'static Mapped> {
    if STATE.load(Ordering::Acquire) == NEW {
        open();
    }
    attached().map(|(file, _)| file)
}

fn open() {
    if STATE.compare_exchange(NEW, STARTING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    heaptoll_process::tsc::choose();
    let found = attach().is_some();
    STATE.store(if found { ATTACHED } else { DETACHED }, Ordering::Release);
}

fn attach() -> Option<()> {
    let file = Mapped::open(heaptoll_process::environment::variable(VARIABLE)?)?;
    if file.wants_cpu() {
        crate::cpu::record();
    }
    if !prepare() {
        return None;
    }
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: pthread_key_create writes to `key`, a local variable; `ended` may be called at the end of any thread.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0;
    // SAFETY: only the thread that moved `STATE` to STARTING gets here, and no thread reads the cell before ATTACHED.
    unsafe { (*FILE.0.get()).write((file, made.then_some(key))) };
    Some(())
}

/// The number of this process's entry plus one; claims it at the process's first event. `None` when there is none left.
pub fn entry(file: &Mapped) -> Option<u32> {
    let known = process().entry.load(Ordering::Acquire);
    if known != 0 {
        return Some(known);
    }
    if process().without.load(Ordering::Relaxed) != 0 {
        return None;
    }
    let (observed, unobserved) = observed::counts();
    let Some(claimed) = file.claim_process(observed, unobserved) else {
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

/// Arranges that the rest of the thread's chunk is kept when the thread ends.
pub fn at_thread_end() {
    if let Some((_, Some(key))) = attached() {
        // If this fails, the rest of the chunk stays unused.
        // SAFETY: `attach` has made the key, and it is never deleted.
        unsafe { libc::pthread_setspecific(*key, ptr::without_provenance::<c_void>(1)) };
    }
}

unsafe extern "C" fn ended(_: *mut c_void) {
    // SAFETY: `current` points to the calling thread's storage, which outlives the destructors of its keys.
    let thread = unsafe { &mut *thread::current() };
    let own = core::mem::replace(thread, Thread::NONE);
    if own.next != own.end && own.process == process().entry.load(Ordering::Relaxed) {
        process().keep(own.next, own.end);
    }
}
