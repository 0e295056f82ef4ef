//! Proof that a program gets its memory from the manager that is about to be measured.
//!
//! `LD_PRELOAD` fails in silence: a static or set-user-ID program ignores it, a manager without an exported `malloc`
//! changes nothing, a program may bring an allocator of its own. Each of these would compare glibc with glibc. So
//! before anything is measured the program runs once with the counting layer in front of the manager, and every
//! process of that run has to show where its `malloc` goes.

mod binding;
mod child;
mod effects;
mod elsewhere;
mod evidence;
mod filter;
mod judge;
mod killed;
mod linked;
mod manager;
mod objects;
mod observe;
mod peak;
mod plan;
mod process;
mod program;
mod proof;
mod prove;
mod refusal;
mod request;
pub mod smoke;
mod tree;

pub use effects::{Effect, Watched};
pub use elsewhere::{hidden_heap_of_trace, own_heap, own_heap_by_size, own_heap_of_trace};
pub use killed::{is_fault, killed_by};
pub use manager::{check_load, inspect_manager};
pub use objects::same_file;
pub use observe::{Observed, observe};
pub use program::{inspect_program, locate};
pub use proof::{ManagerFacts, ProcessProof, ProgramFacts, Proof};
pub use prove::{IN_PROOF_RUN, preflight};
pub use refusal::Refusal;
pub use request::{Request, Watch};
