//! The end of the program: when `exit` begins, before the first handler or destructor.
//!
//! `exit` cannot be interposed: `err`, the return from `main` and the last thread's `pthread_exit` call it inside the C
//! library. But it does nothing of the program's before it calls the handler that was registered last. So a layer
//! exports the functions that register handlers, and passes on a function of its own in place of each
//! ([`handlers`]), which checks whether the C library's `exit` is on its stack ([`exit_frame`]). `dlclose` and the end of
//! a thread call handlers too, without it. The handler that was registered first is the loader's, by
//! `__libc_start_main`: so there always is one.
//!
//! Three ways to end call no such handler, and are interposed: `quick_exit`, `_exit` and `_Exit`. Not found: a system
//! call that the program makes itself, and a signal that ends it. In both cases nothing of the program runs afterwards.
#![no_std]

mod exit_frame;
pub mod handlers;
mod immediate;

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

pub use immediate::{_exit, quick_exit};

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

/// Has `hook` called when the end begins, at an [`Ending::Immediate`] only where that is wanted. Called by the layer's
/// constructor; may allocate.
pub fn prepare(hook: Hook, wants_immediate: bool) {
    exit_frame::find();
    immediate::find();
    HANDLERS_ALONE.store(!wants_immediate, Ordering::Release);
    HOOK.store(hook as usize, Ordering::Release);
}

/// Calls the hook, once in each process. A child of fork or vfork has another process id.
fn begins(ending: Ending) {
    // Without a system call: a program in a sandbox ends by `_exit`, and the filter may forbid getpid.
    if ending == Ending::Immediate && HANDLERS_ALONE.load(Ordering::Acquire) {
        return;
    }
    let hook = HOOK.load(Ordering::Acquire);
    // SAFETY: getpid takes no pointers and cannot fail.
    let process = unsafe { libc::getpid() };
    if hook != 0 && ENDED.swap(process, Ordering::AcqRel) != process {
        // SAFETY: only `prepare` stores the address, of a function of this type; `__errno_location` returns the address
        // of the calling thread's errno.
        unsafe {
            let errno = *libc::__errno_location();
            core::mem::transmute::<usize, Hook>(hook)(ending);
            *libc::__errno_location() = errno;
        }
    }
}

/// Exports the functions by which programs end, and register what runs then.
#[macro_export]
macro_rules! export_ending {
    () => {
        $crate::export_start!();
        $crate::export_registration!(__cxa_atexit, $crate::handlers::at_exit);
        $crate::export_registration!(on_exit, $crate::handlers::on_exit);
        $crate::export_registration!(__cxa_thread_atexit_impl, $crate::handlers::at_thread_exit);

        #[unsafe(no_mangle)]
        pub extern "C" fn quick_exit(status: core::ffi::c_int) -> ! {
            $crate::quick_exit(status)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn _exit(status: core::ffi::c_int) -> ! {
            $crate::_exit(status)
        }

        /// The same under its C name.
        #[unsafe(no_mangle)]
        pub extern "C" fn _Exit(status: core::ffi::c_int) -> ! {
            $crate::_exit(status)
        }
    };
}
