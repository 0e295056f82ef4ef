//! The signal that stops a thread: its handler, how it is installed and how it is sent.
//!
//! The default is one of the two that glibc keeps to itself ([`DEFAULT_SIGNAL`]): a program that blocks or awaits all
//! signals, as programs with a thread for signals do, does not receive it, since `sigfillset` leaves it out and
//! `sigprocmask`, `sigaction` and `sigwait` ignore it. A signal that is not this crate's is passed on to the handler
//! that was installed before.
//!
//! The handler runs where the program's own handlers run. Languages with small stacks have theirs run on alternate
//! stacks, since no frame of a signal fits on the others. Other programs may have alternate stacks on which none fits, or
//! which they have freed: a stack that no handler uses is never missed.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::SignalMaskGuard;

use crate::handshake::Handshake;
use crate::kernel::{self, Error};
use crate::registers::Registers;
use crate::restart;

/// The signal unless the user sets another: glibc's SIGSETXID, by which one thread makes the others change their user.
/// Its own signals for it differ from this crate's by their origin, and are passed on.
pub const DEFAULT_SIGNAL: c_int = 33;

/// The lowest real-time signal of the kernel: those below it are not queued with a value each.
const FIRST_REAL_TIME: c_int = 32;
/// The highest signal.
const LAST: c_int = 64;

/// Marks the signals of this crate: the upper half of the value that is sent along. The lower half is the number of the
/// record.
const MARK: usize = 0x7469_7468 << 32;

/// The kernel's `struct sigaction`, which is not the C library's.
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

const SA_RESTORER: u64 = 0x0400_0000;
const ON_ALTERNATE: u64 = libc::SA_ONSTACK as u64;

impl Action {
    fn has_handler(&self) -> bool {
        self.handler != libc::SIG_DFL && self.handler != libc::SIG_IGN
    }
}

/// What was installed before, 0 if nothing, and whether it takes three arguments.
static FORMER: AtomicUsize = AtomicUsize::new(0);
static FORMER_FLAGS: AtomicUsize = AtomicUsize::new(0);

/// The kernel's structure of a queued signal, as far as it is used here.
#[repr(C)]
struct QueuedSignal {
    signal: c_int,
    error: c_int,
    code: c_int,
    pad: c_int,
    process: c_int,
    user: u32,
    value: usize,
    rest: [u64; 12],
}

/// Returns from a handler. The unwinder of GCC knows a signal frame by exactly these bytes.
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    naked_asm!(".byte 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0", "syscall")
}

unsafe extern "C" fn handler(signal: c_int, information: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a structure of 128 bytes; of those after `code` only `value` is read, and only for the
    // code of queued signals, which have one.
    let queued = unsafe { &*information.cast::<QueuedSignal>() };
    if queued.code == libc::SI_QUEUE && queued.value & !0xffff_ffff == MARK {
        // SAFETY: `context` is what the kernel passed to this handler: the interrupted context.
        let begun = restart::begin(unsafe { &*context.cast() });
        if let Some(handshake) = Handshake::published() {
            // SAFETY: `context` is what the kernel passed to this handler: the interrupted context.
            handshake.reply(queued.value as u32, || unsafe { Registers::interrupted(context.cast()) });
        }
        // SAFETY: the same context; all signals are blocked, and nothing here needs to be dropped.
        return unsafe { restart::go_on(&mut *context.cast(), begun) };
    }
    let former = FORMER.load(Ordering::Acquire);
    if former == 0 {
        return;
    }
    if FORMER_FLAGS.load(Ordering::Relaxed) & libc::SA_SIGINFO as usize != 0 {
        // SAFETY: the kernel's flags state that this handler was installed as such a function.
        let former: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { core::mem::transmute(former) };
        former(signal, information, context);
    } else {
        // SAFETY: without `SA_SIGINFO` the handler was installed as such a function.
        let former: extern "C" fn(c_int) = unsafe { core::mem::transmute(former) };
        former(signal);
    }
}

/// Makes sure that the handler is installed, whatever the program has done with the signal meanwhile.
///
/// # Errors
/// The kernel's: there is no such signal.
pub fn install(signal: c_int) -> Result<(), Error> {
    if !(FIRST_REAL_TIME..=LAST).contains(&signal) {
        return Err(Error(libc::EINVAL));
    }
    let former = installed(signal)?;
    let is_ours = former.handler == handler as *const () as usize;
    // Some languages add the flag to the handlers of others.
    let on_alternate = is_ours && former.flags & ON_ALTERNATE != 0 || has_handlers_on_alternate_stacks();
    if is_ours && (former.flags & ON_ALTERNATE != 0) == on_alternate {
        return Ok(());
    }
    if !is_ours && former.has_handler() {
        FORMER_FLAGS.store(former.flags as usize, Ordering::Relaxed);
        FORMER.store(former.handler, Ordering::Release);
    }
    let flags = (libc::SA_SIGINFO | libc::SA_RESTART) as u64 | SA_RESTORER;
    let new = Action {
        handler: handler as *const () as usize,
        flags: flags | if on_alternate { ON_ALTERNATE } else { 0 },
        restorer: restorer as *const () as usize,
        // No other handler runs on a stopped thread.
        mask: u64::MAX,
    };
    action(signal, Some(&new), None)
}

/// Whether the program has a handler that runs on alternate stacks.
fn has_handlers_on_alternate_stacks() -> bool {
    // The first is the one that most such programs have.
    [libc::SIGSEGV].into_iter().chain(1..FIRST_REAL_TIME).any(|signal| {
        installed(signal).is_ok_and(|action| action.has_handler() && action.flags & ON_ALTERNATE != 0)
    })
}

fn installed(signal: c_int) -> Result<Action, Error> {
    let mut installed = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    action(signal, None, Some(&mut installed))?;
    Ok(installed)
}

fn action(signal: c_int, new: Option<&Action>, old: Option<&mut Action>) -> Result<(), Error> {
    let new = new.map_or(0, |action| core::ptr::from_ref(action) as usize);
    let old = old.map_or(0, |action| core::ptr::from_mut(action) as usize);
    let mask = size_of::<u64>();
    // SAFETY: both are null or valid; the handler keeps to what a handler may do.
    unsafe { kernel::call(libc::SYS_rt_sigaction, [signal as usize, new, old, mask, 0, 0]) }.map(drop)
}

/// The result of sending a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendResult {
    Yes,
    /// There is no such thread any more.
    Gone,
    /// Too many signals are queued for this user: later.
    Full,
}

/// Sends the signal to a thread, with the number of its record.
pub fn send(signal: c_int, process: c_int, tid: c_int, record: u32) -> SendResult {
    let queued = QueuedSignal {
        signal,
        error: 0,
        code: libc::SI_QUEUE,
        pad: 0,
        process,
        user: 0,
        value: MARK | record as usize,
        rest: [0; 12],
    };
    assert_internal!(queued.value & !0xffff_ffff == MARK, "a signal of this crate bears its mark");
    assert_internal!(tid > 0 && process > 0, "a signal goes to a thread of this process");
    let information = &raw const queued as usize;
    // SAFETY: the structure is as long as the kernel's siginfo.
    let sent = unsafe {
        kernel::call(
            libc::SYS_rt_tgsigqueueinfo,
            [process as usize, tid as usize, signal as usize, information, 0, 0],
        )
    };
    match sent {
        Ok(_) => SendResult::Yes,
        Err(Error(libc::ESRCH)) => SendResult::Gone,
        Err(_) => SendResult::Full,
    }
}

/// Makes the calling thread handle one signal, without a record; false: it could not be sent.
pub fn take_one(signal: c_int) -> bool {
    let _signal_mask = SignalMaskGuard::all_but(&[signal]);
    send(signal, kernel::process(), kernel::thread(), u32::MAX) == SendResult::Yes
}

// The layouts of the kernel's structures.
const _: () = {
    assert!(size_of::<QueuedSignal>() == 128 && core::mem::offset_of!(QueuedSignal, code) == 8);
    assert!(
        core::mem::offset_of!(QueuedSignal, process) == 16
            && core::mem::offset_of!(QueuedSignal, value) == 24
    );
    assert!(size_of::<Action>() == 32 && core::mem::offset_of!(Action, mask) == 24);
    assert!(MARK & 0xffff_ffff == 0 && FIRST_REAL_TIME <= DEFAULT_SIGNAL && DEFAULT_SIGNAL <= LAST);
};
