//! The cost of the malloc family's routines, in instructions: how many calls of each took how many, by requested size,
//! and how large the heap grew compared with the bytes requested.
//!
//! The figures are those of Detlefs, Dosser & Zorn, "Memory Allocation Costs in Large C and C++ Programs" (1994),
//! Tables IV to VII and X, and of Zorn, "The Measured Cost of Conservative Garbage Collection" (1992), Table 2. A
//! [`Costs`] is a [`heaptoll_reftrace::Sink`]: it needs events only, no references, and its memory is bounded by the
//! program's live blocks and the number of distinct sizes and costs, never by the length of the run.

mod blocks;
mod class;
mod costs;
mod figures;
mod group;
mod heap;
mod pages;
mod phases;
mod requests;
mod spread;
mod tally;

pub use class::SizeClass;
pub use costs::Costs;
pub use figures::{
    Amounts, BySize, ClassFigures, Counts, Figures, Groups, HeapFigures, Instructions, Owners,
    RoutineFigures, SpreadFigures, Tables,
};
pub use group::{Group, group};
pub use phases::Phases;
pub use requests::{Requested, Requests};
pub use spread::Spread;
