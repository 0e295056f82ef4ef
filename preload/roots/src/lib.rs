//! Roots: where the words are that keep objects alive, and how the program is stopped while they are read.
//!
//! Every collector of this project uses it: it finds the threads in `/proc/self/task`, stops them by a signal, and
//! shows registers, stacks and every writable or shared mapping of the process except those that the caller leaves out. A program
//! may keep a pointer in memory that it mapped itself, so nothing less than all mappings will do.
//!
//! Nothing here allocates by malloc, takes a lock of the C library or changes `errno`: system calls are made directly,
//! and working memory is mapped.
//!
//! What cannot be seen: pointers that only the kernel holds and does not show (`docs/method/limits.md` lists them), pages of
//! shared memory that are swapped out, some pages of large files, memory that is not readable at the time, and the
//! registers of other processes that share the address space without being threads.
#![no_std]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!(
    "heaptoll-roots knows the registers, the signal frame and the system call convention of x86_64 Linux only: add \
     yours to kernel.rs, registers.rs and signal.rs"
);

#[cfg(test)]
extern crate std;

mod areas;
mod buffer;
mod descriptors;
mod entries;
mod exec_gate;
pub mod execs;
mod files;
mod handshake;
mod held;
mod kernel;
pub mod kernel_calls;
mod kernel_held;
mod leave;
mod lines;
mod mapping_query;
mod maps;
mod own_stack;
mod page_kind;
mod pages;
mod proc;
mod queued_values;
mod registers;
mod restart;
mod scan;
mod scratch;
mod signal;
mod stopped;
mod tasks;
mod thread;
mod userfault;
mod vectors;
mod world;
mod write_tracker;

use core::ops::Range;

pub use buffer::{Buffer, NoMemory};
// For the expansion of `interpose_kernel_calls!`.
#[doc(hidden)]
pub use heaptoll_runtime::interpose_execs;
pub use held::{HIGH, Held};
pub use kernel::{Error, File, is_readable};
pub use signal::DEFAULT_SIGNAL;
pub use stopped::{RootsError, StoppedWorld};
pub use world::{StopError, UnstoppedThread, World};
pub use write_tracker::{Untracked, WriteScan, WriteTracker};

/// Where a root range comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The saved registers of a thread, its stack pointer among them.
    Registers,
    /// A mapping that a thread's stack pointer points into.
    Stack,
    /// Writable data of a loaded object.
    Statics,
    /// Any other mapping.
    Mapping,
    /// A mapping that can be executed: code made by the program, with addresses as operands of instructions, at any
    /// byte.
    Code,
    /// What only the kernel holds: the data of epoll's entries, the values of timers and of signals that wait.
    Kernel,
}

/// Which words are roots, besides the registers and stacks of all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootKinds {
    /// Those of [`Origin::Statics`].
    pub statics: bool,
    /// Those of [`Origin::Mapping`] and [`Origin::Code`].
    pub mappings: bool,
    /// Those of [`Origin::Kernel`].
    pub kernel: bool,
}

impl RootKinds {
    /// Wherever a program may keep a pointer.
    pub const ALL: RootKinds = RootKinds { statics: true, mappings: true, kernel: true };

    /// Whether words from there are roots.
    pub const fn have(self, origin: Origin) -> bool {
        match origin {
            Origin::Registers | Origin::Stack => true,
            Origin::Statics => self.statics,
            Origin::Mapping | Origin::Code => self.mappings,
            Origin::Kernel => self.kernel,
        }
    }
}

/// Words to be read: `start` and `end` are multiples of 8; every page of it is readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub range: Range<usize>,
    pub origin: Origin,
}
