//! Names of code: of the call stacks of a recording, of addresses in files, of mangled symbols.
//!
//! Apart from `heaptoll-record`, since reading debug information takes long unoptimised, and the recorder does not.

mod demangled;
mod symbols;

pub use demangled::demangled;
pub use symbols::{Symbols, functions_at, memory_bytes};
