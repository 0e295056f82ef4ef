//! CSV.
use crate::ReportError;
use heaptoll_lab::experiment::Experiment;
use std::io::Write;
/// One line an observation.
pub fn write(_experiment: &Experiment, _out: impl Write) -> Result<(), ReportError> {
    todo!()
}
