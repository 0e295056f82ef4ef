//! What the tool reads in ELF files, once for the preflight, the recorder, the builder of peers and the benches: the
//! facts that matter to preloading, the functions that an object defines and their other names, its variables. Nothing is executed, and
//! a file may be hostile: what is truncated or leads out of the file is an [`ElfError`].

mod aliases;
mod data;
mod error;
mod facts;
pub mod family;
mod file;
mod names;

pub use aliases::aliases;
pub use data::{Data, Variable, data};
pub use error::ElfError;
pub use facts::{Elf, has_loader, own_machine, read};
pub use names::defined_names;
