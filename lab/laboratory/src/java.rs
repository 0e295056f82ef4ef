//! Programs in Java under the collectors of their own virtual machine.
//!
//! A collector of HotSpot is no shared object: it is chosen by an option, which `JAVA_TOOL_OPTIONS` carries to every
//! virtual machine that a program starts. The same variable makes it write its log of collections into the run's scratch
//! folder. From there come the figures that a manager of ours writes on the statistics page, and the proof that the
//! collector and the heap were those that were requested.

mod collectors;
mod gc_log;
mod logs;
mod memory;
mod proof;

pub use gc_log::{Collector, GcLog, GcLogError, HeapChange, Pause};
pub use logs::{JavaLog, JavaLogError, logs, slots};
pub use memory::is_out_of_memory;
pub use proof::{NotJava, proof};
