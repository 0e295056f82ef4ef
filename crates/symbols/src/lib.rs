//! Names of code: of the call stacks of a recording, of addresses in files, of mangled symbols.
//!
//! A crate apart from the recorder's: tests have it optimised, or reading debug information takes most of their time.
//!
//! `object`, `gimli` and `addr2line` read symbol tables and DWARF, with separate files by build id or `.gnu_debuglink`,
//! `dwz` and split DWARF. `blazesym` (November 2026) does not check that a file is the one that was loaded, and maps the
//! files that it reads: a shortened one ends the tool. A recording contacts no network; `debuginfod-find` fills the folder
//! that is read.

mod demangled;
mod symbols;

pub use demangled::demangled;
pub use symbols::{Symbols, functions_at, memory_bytes};
