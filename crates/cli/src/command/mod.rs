//! One file a command. Commands gather arguments, call the laboratory, and hand values to the report.

pub mod compare;
pub mod managers;
pub mod programs;
pub mod report;
pub mod run;
