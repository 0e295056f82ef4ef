//! Figures of one class of machines: an experiment of several has no one table.

use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_report::format::and_list;

/// Refuses an experiment that several classes of machines measured.
///
/// # Errors
/// Which these are.
pub fn one_class(experiment: &Experiment, path: &Path) -> Result<(), Failure> {
    let classes: Vec<String> = experiment.classes().into_iter().map(str::to_owned).collect();
    if classes.len() < 2 {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} was measured on {}; classes are never averaged: make a file of one class by `heaptoll lab shards merge \
         --class NAME`",
        path.display(),
        and_list(&classes)
    )))
}
