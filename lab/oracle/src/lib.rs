//! When each object of a program may be freed, from the tracer's records.
//!
//! [`Recorder`] decodes one process image: which allocations it makes, in order, and which object each reference touches.
//! [`Recording`] is what it found; [`file`] is the file that the oracle layer follows, [`live`] the requested bytes that
//! each point of reclamation keeps alive.

pub mod file;
pub mod live;
pub mod recorder;
pub mod recording;
pub mod schedule;
pub mod unreachable;

pub use file::{About, ObjectFile, OracleFile, OracleFileError};
pub use live::{FreePoint, Live};
pub use recorder::Recorder;
pub use recording::{Object, Recording, Site, Unusable};
pub use unreachable::{RootPoints, Unreachable};
