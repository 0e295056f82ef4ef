//! Steps through malloc and free, instruction by instruction, where a free list has a block.
//!
//! The managers whose papers promise a short path (a free list's head taken off, a block put on) are held to it: no
//! loop and no call on the way. The executed instructions are judged, not the source.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("`heaptoll-bench fastpath` reads x86-64 registers under Linux's ptrace");

mod command;
pub mod gate;
pub mod program;
pub mod tracer;

pub use command::{Options, run};
pub use gate::{Gate, Verdict, gate};
pub use program::Program;
pub use tracer::{CodeLocation, Operation, Path, StepError};
