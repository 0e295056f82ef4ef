//! Call stacks as people read them. Two stacks of C++ or Rust differ in dozens of frames of the standard library, none
//! of which the reader wrote; what is wanted is the place in the program's own code. So a stack becomes a [`Row`]: its
//! first frames that are the program's own, with short names and with recursion folded; stacks whose rows read alike
//! are put together ([`Rows`]). Everything that shows call sites goes this way, whoever walked the stacks.

mod frame;
mod own;
mod row;
mod rows;
mod short;

pub use frame::{Frame, WholeFrame};
pub use own::is_own;
pub use row::Row;
pub use rows::Rows;
pub use short::short;

/// Frames of a row when nothing else is asked for.
pub const FRAMES: usize = 3;
