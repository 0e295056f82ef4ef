//! Programs in Java under the collectors of their own virtual machine.
//!
//! A collector of HotSpot is no shared object: it is chosen by an option, which `JAVA_TOOL_OPTIONS` carries to every
//! virtual machine that a program starts. The same variable makes it write its log of collections into the run's scratch
//! folder. From there come the figures that a manager of ours writes on the statistics page, and the proof that the
//! collector and the heap were those that were requested.

mod collectors;
mod logs;
mod memory;
mod names;
mod proof;

pub use collectors::{collectors, is_java, is_set, known};
pub use logs::{JavaLog, JavaLogError, in_folder, logs, slots};
pub use memory::is_out_of_memory;
pub use names::VARIABLE;
pub use proof::{NotJava, proof};
