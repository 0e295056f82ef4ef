//! Call stacks in the form in which people read them. Two stacks of C++ or Rust differ in dozens of frames of the
//! standard library, none of which the reader wrote; what matters is the position in the program's own code. So a stack
//! becomes a [`Row`]: its first frames that are the program's own, with short names and with recursion folded; stacks
//! whose rows read alike are merged ([`Rows`]). Everything that shows call sites uses this, for the recorder's stacks
//! and the tracer's.

mod end;
mod frame;
mod kept;
mod own;
mod path;
mod row;
mod rows;
mod short;
mod sum;
mod variant;

pub use end::whole;
pub use frame::{CHANGED, Frame, NOT_HERE, WholeFrame, object_name};
pub use kept::kept_by;
pub use own::{is_folded, is_own};
pub use path::{Paths, Steps};
pub use row::Row;
pub use rows::Rows;
pub use short::short;
pub use sum::Sum;
pub use variant::{function_name, without_variant};

/// Default number of frames of a row.
pub const FRAMES: usize = 3;
