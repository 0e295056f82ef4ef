//! Parquet.
use crate::ReportError;
use heaptoll_lab::experiment::Experiment;
use std::io::Write;
/// One row an observation.
pub fn write(_experiment: &Experiment, _out: impl Write + Send) -> Result<(), ReportError> {
    todo!()
}
