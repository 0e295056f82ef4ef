//! `libtithe.a`: see `heaptoll_tithe`. The program keeps its own malloc, whose heap is one more mapping that is
//! scanned.
//!
//! This does what `preload!` does for the shared object, without malloc's names: start, fork, thread exit. The script
//! `pack` in this folder hides every symbol of the archive that is not in `include/tithe.h`.
#![no_std]

use heaptoll_runtime::{AtFork, Manager, Message, at_fork, report_defect};
use heaptoll_tithe::Process;

// SAFETY: the value of a static.
static TITHE: Process = unsafe { Process::linked() };

heaptoll_tithe::tithe_api!(TITHE);

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    report_defect("tithe", info)
}

struct Forks;

impl AtFork for Forks {
    fn before() {
        TITHE.before_fork();
    }

    fn in_parent() {
        TITHE.after_fork();
    }

    fn in_child() {
        TITHE.after_fork_in_child();
    }
}

extern "C" fn at_start() {
    if at_fork::<Forks>() != 0 {
        Message::new().text("tithe: no memory for the fork handlers").abort();
    }
    TITHE.start();
}

extern "C" fn at_exit() {
    TITHE.finish();
}

heaptoll_runtime::at_load_and_exit!(at_start, at_exit);
