//! The page.
use crate::ReportError;
use heaptoll_lab::{comparison::Comparison, experiment::Experiment};
/// One self-contained page.
pub fn render(_experiment: &Experiment, _comparison: &Comparison) -> Result<String, ReportError> {
    todo!()
}
