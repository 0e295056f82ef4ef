//! Stacks as they are written on the command line: layers in front of a manager, from the program's side inwards.
//!
//! ```text
//! quarantine=2M/mimalloc3      sweep,every=64K/jemalloc      record/tithe      tithe-collect,every=8M,reclaim=4
//! LAYER[=VALUE][,OPTION=VALUE...]/MANAGER[,OPTION=VALUE...]
//! ```
//! A layer is a shared object that exports the malloc family and forwards to the next one. Its settings travel in an
//! environment variable of its own as `name=value` pairs, sizes in bytes; a manager's options travel in the variables
//! that its description names. A stack without meaning is refused here, before anything runs.

mod error;
mod layer;
mod option;
mod word;

pub use error::StackError;
pub(crate) use layer::fixes_addresses;
pub use layer::{Layer, LayerFile, LayerKind, LayerValue, installed, named};
pub(crate) use option::read_options;
pub use option::{ManagerOption, Values};
pub use word::layers;
