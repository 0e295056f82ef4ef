//! Limits that a user set for the program and that heaptoll itself meets: a small stack is not used, and an end without
//! memory names the limit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::process::ExitCode;
use std::sync::OnceLock;

use heaptoll_units::limits;
use rustix::process::Resource;

use crate::exit;

/// What the command line's definitions and the deepest report take, many times over.
const STACK: u64 = 8 << 20;

/// Runs `main`, on a stack of its own where the limit of the main thread's (`ulimit -s`) is lower.
pub fn with_enough_stack(main: impl Fn() -> ExitCode + Copy + Send + 'static) -> ExitCode {
    if limits::set(Resource::Stack).is_none_or(|bytes| bytes >= STACK) {
        return main();
    }
    match std::thread::Builder::new().stack_size(STACK as usize).spawn(main) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(exit::REFUSED)),
        Err(_) => main(),
    }
}

/// What an allocation that fails ends heaptoll with, where a limit of memory is set.
static LIMITS: OnceLock<String> = OnceLock::new();

/// Under a limit of memory, an allocation or a panic that it causes ends heaptoll with the name of the limit and the command
/// that raises it.
pub fn name_the_limit_of_memory() {
    let Some(limits) = limits::memory() else { return };
    let text =
        LIMITS.get_or_init(|| format!("error: heaptoll itself may have had too little memory; {limits}\n"));
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        let _ = std::io::stderr().write_all(text.as_bytes());
    }));
}

/// The system's allocator, which ends heaptoll in place of a failure under a limit of memory. The standard library would
/// print a backtrace then: that needs memory too, and its failure would wait for the backtrace's own lock.
pub struct Allocator;

impl Allocator {
    fn or_end(block: *mut u8) -> *mut u8 {
        if block.is_null()
            && let Some(text) = LIMITS.get()
        {
            // SAFETY: write reads `text`, which stays, and _exit takes a plain number; both are bare system calls.
            unsafe {
                libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
                libc::_exit(exit::REFUSED.into());
            }
        }
        block
    }
}

// SAFETY: all calls are the system allocator's, which meets the contract, and so do their results.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller meets the contract of this function, which is the same.
        Self::or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Self::or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        Self::or_end(unsafe { System.realloc(block, layout, bytes) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
