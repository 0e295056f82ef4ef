//! Limits that a user set for the program and that heaptoll itself meets: a small stack is not used, and an end without
//! memory names the limit.

use std::io::Write;
use std::process::ExitCode;

use heaptoll_units::limits;
use rustix::process::Resource;

use crate::exit;
use heaptoll_command::failure::Failure;

/// What the command line's definitions and the deepest report take, many times over.
const STACK: u64 = 8 << 20;

/// Runs `main`, on a stack of its own where the limit of the main thread's (`ulimit -s`) is lower.
pub fn with_enough_stack(main: fn() -> ExitCode) -> ExitCode {
    if limits::set(Resource::Stack).is_none_or(|bytes| bytes >= STACK) {
        return main();
    }
    match std::thread::Builder::new().stack_size(STACK as usize).spawn(main) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(exit::REFUSED)),
        Err(_) => main(),
    }
}

/// Under a limit of memory, an allocation that fails ends heaptoll with the name of the limit and the command that raises it.
///
/// # Errors
/// The signal cannot be caught.
pub fn name_the_limit_of_memory() -> Result<(), Failure> {
    let Some(limits) = limits::memory() else { return Ok(()) };
    let text = format!("error: heaptoll itself may have had too little memory; {limits}\n");
    let at_panic = text.clone();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        let _ = std::io::stderr().write_all(at_panic.as_bytes());
    }));
    let print = move || {
        // SAFETY: write reads `text`, which the closure owns, and _exit takes a plain number; both are bare system calls.
        unsafe {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            libc::_exit(exit::REFUSED.into());
        }
    };
    // SAFETY: the closure takes no lock, allocates nothing and does not return, which a signal's handler may do.
    unsafe { signal_hook::low_level::register(libc::SIGABRT, print) }.map(drop).map_err(exit::cannot_watch)
}
