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

mod exit_frame;
pub mod handlers;
mod hook;
mod immediate;

pub use hook::{Ending, Hook};
pub use immediate::{_exit, quick_exit};

/// Has `hook` called when the end begins, at an [`Ending::Immediate`] only where that is wanted. Called by the layer's
/// constructor; may allocate.
pub fn prepare(hook: Hook, wants_immediate: bool) {
    exit_frame::find();
    immediate::find();
    hook::set(hook, wants_immediate);
}

/// Exports the functions by which programs end, and register what runs then.
#[macro_export]
macro_rules! export_ending {
    () => {
        $crate::export_start!();
        $crate::export_registration!(__cxa_atexit, $crate::ending::handlers::at_exit);
        $crate::export_registration!(on_exit, $crate::ending::handlers::on_exit);
        $crate::export_registration!(__cxa_thread_atexit_impl, $crate::ending::handlers::at_thread_exit);

        #[unsafe(no_mangle)]
        pub extern "C" fn quick_exit(status: core::ffi::c_int) -> ! {
            $crate::ending::quick_exit(status)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn _exit(status: core::ffi::c_int) -> ! {
            $crate::ending::_exit(status)
        }

        /// The same under its C name.
        #[unsafe(no_mangle)]
        pub extern "C" fn _Exit(status: core::ffi::c_int) -> ! {
            $crate::ending::_exit(status)
        }
    };
}
