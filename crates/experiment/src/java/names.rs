//! Names that the options of virtual machines, their environment and their logs have in common.

/// The variable by which a virtual machine is given options without a change of its command line.
pub const VARIABLE: &str = "JAVA_TOOL_OPTIONS";
/// What stands for the scratch folder in the options.
pub(super) const FOLDER: &str = "{tmp}";
/// What the names of logs begin and end with.
pub(super) const LOG: (&str, &str) = ("heaptoll-gc-", ".log");
