//! Allocators that programs are linked with under names of their own (`mi_malloc`, `_rjem_malloc`, Rust's shims), as a
//! table that users can read and extend: which symbol does the work of which routine of C, and which argument is the
//! size, the alignment, the block. The tracer recognises calls by it; the tool finds by it what a file contains.

mod argument;
mod definition;
mod error;
mod found;
mod names;
mod table;

pub use error::TableError;
pub use found::{Found, in_file, of_c};
pub use table::{C_FAMILY, Family, Table};
