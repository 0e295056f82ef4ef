//! Names of code: of the call stacks of a recording, of addresses in files, of mangled symbols.
//!
//! A crate apart from the recorder's: tests have it optimised, or reading debug information takes most of their time.

mod demangled;
mod symbols;

pub use demangled::demangled;
pub use symbols::{Symbols, functions_at, memory_bytes};
