//! When each object of a program may be freed, from the tracer's records.
//!
//! [`Recorder`] decodes one process image: which allocations it makes, in order, and which object each reference touches.
//! [`Recording`] is what it found; [`file`] is the file that the oracle layer follows, [`live`] the requested bytes that
//! each moment of reclamation keeps alive.

pub mod deaths;
pub mod file;
pub mod live;
pub mod recorder;
pub mod recording;

pub use file::{About, ObjectFile, OracleFile, OracleFileError};
pub use live::{Live, Moment};
pub use recorder::Recorder;
pub use recording::{Object, Recording, Site, Unusable};
