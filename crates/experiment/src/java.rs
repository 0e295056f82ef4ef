//! Programs in Java under the collectors of their own virtual machine.
//!
//! A collector of HotSpot is no shared object: it is chosen by an option, which `JAVA_TOOL_OPTIONS` carries to every
//! virtual machine that a program starts. The same variable makes it write its log of collections into the run's scratch
//! folder. From there come the figures that a manager of ours writes on the statistics page, and the proof that the
//! collector and the heap were those that were requested.

mod collectors;
mod logs;
mod proof;

pub use collectors::{VARIABLE, collectors, is_java, is_set};
pub use logs::{JavaLog, JavaLogError, in_folder, logs, slots};
pub use proof::{NotJava, proof};

/// What stands for the scratch folder in the options.
const FOLDER: &str = "{tmp}";
/// What the names of logs begin and end with.
const LOG: (&str, &str) = ("heaptoll-gc-", ".log");

/// Lines by which a virtual machine reports that its heap is too small: to standard error, or, where it does not even
/// start, to standard output.
const OUT_OF_MEMORY: [&str; 4] = [
    "java.lang.OutOfMemoryError",
    "Error occurred during initialization of VM\nToo small",
    "Error occurred during initialization of VM\nCould not reserve enough space",
    "GC triggered before VM initialization completed",
];

/// Whether a text reports that the heap is too small.
pub fn is_out_of_memory(text: &str) -> bool {
    OUT_OF_MEMORY.into_iter().any(|line| text.contains(line))
}
