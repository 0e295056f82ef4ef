//! What is called when the end begins: once in each process.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By `exit`, the return from `main` or `quick_exit`: its handlers and destructors run next.
    Handlers,
    /// By `_exit`, perhaps in a signal handler that has interrupted the manager: nothing more of the program runs.
    Immediate,
}

/// Called when the program's end begins, on the thread that ends it. A child of vfork calls it too: the hook checks
/// the process id if that matters. Rarely, it is called twice.
pub type Hook = fn(Ending);

/// The hook; 0: the layer stands aside.
static HOOK: AtomicUsize = AtomicUsize::new(0);
/// The process whose end has begun.
static ENDED: AtomicI32 = AtomicI32::new(0);
/// Whether an immediate end is none of the hook's business.
static HANDLERS_ALONE: AtomicBool = AtomicBool::new(false);

/// Sets the hook.
pub fn set(hook: Hook, wants_immediate: bool) {
    HANDLERS_ALONE.store(!wants_immediate, Ordering::Release);
    HOOK.store(hook as usize, Ordering::Release);
}

/// Calls the hook, once in each process. A child of fork or vfork has another process id.
pub fn begins(ending: Ending) {
    // Without a system call: a program in a sandbox ends by `_exit`, and the filter may forbid getpid.
    if ending == Ending::Immediate && HANDLERS_ALONE.load(Ordering::Acquire) {
        return;
    }
    let hook = HOOK.load(Ordering::Acquire);
    // SAFETY: getpid takes no pointers and cannot fail.
    let process = unsafe { libc::getpid() };
    if hook != 0 && ENDED.swap(process, Ordering::AcqRel) != process {
        // SAFETY: only `set` stores the address, of a function of this type; `__errno_location` returns the address
        // of the calling thread's errno.
        unsafe {
            let errno = *libc::__errno_location();
            core::mem::transmute::<usize, Hook>(hook)(ending);
            *libc::__errno_location() = errno;
        }
    }
}
