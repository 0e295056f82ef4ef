//! Shared by the experiments that run programs under the tracer: the plan of runs, their execution, and remarks
//! on their figures.
//!
//! An experiment has a [`Request`] in its own, calls [`plan`], then [`execute`] with what makes a sink for a process
//! image and what makes a row of a finished run. Of the rows by program it makes its findings.

mod cell;
mod document;
mod execute;
mod find_own;
mod fit;
mod own;
mod plan;
mod remarks;
mod scout;
mod scratch;
mod seen;
mod single;

pub use cell::{Cell, Figures, ImageSummary, JudgedRun};
pub use document::{Shown, document, warnings_of};
pub use execute::{Executed, Made, execute};
pub use find_own::{OwnError, find as find_own};
pub use fit::{NOT_MEASURABLE, fitness_of, other_path};
pub use own::{Follow, OwnAllocator};
pub use plan::{LIMIT_S, Plan, Request, plan, symbol_table};
pub use remarks::of as remarks_of;
pub use scout::Scout;
pub use scratch::make as scratch_folder;
pub use seen::doubt as half_seen;
pub use single::{Run, TracedRunner, outcome as outcome_of};
