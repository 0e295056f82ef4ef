//! JSON.
use crate::ReportError;
use heaptoll_lab::{comparison::Comparison, experiment::Experiment};
use std::io::{Read, Write};
/// The schema this version writes.
pub const SCHEMA: &str = "heaptoll.experiment/1";
/// Writes one JSON document.
pub fn write(
    _experiment: &Experiment,
    _comparison: &Comparison,
    _out: impl Write,
) -> Result<(), ReportError> {
    todo!()
}
/// Reads what [`write`] wrote.
pub fn read(_input: impl Read) -> Result<(Experiment, Comparison), ReportError> {
    todo!()
}
