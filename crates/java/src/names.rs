//! Names that the descriptions of virtual machines (`managers`) and their logs have in common.

/// The variable by which a virtual machine is given options without a change of its command line.
pub const VARIABLE: &str = "JAVA_TOOL_OPTIONS";
/// What the names of logs begin and end with.
pub(super) const LOG: (&str, &str) = ("heaptoll-gc-", ".log");
