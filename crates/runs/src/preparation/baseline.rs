//! The manager that ratios are taken to when none is named, and what the words of managers name.

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::named::Named;

/// Its name.
pub const DEFAULT: &str = "glibc";

/// What these words name; a baseline that is not the default was named.
pub fn named(known: &[Manager], managers: &[String], baseline: &String, programs: &[String]) -> Named {
    let baseline = (baseline != DEFAULT).then_some(baseline);
    Named { managers: manager::names_of(known, managers.iter().chain(baseline)), programs: programs.into() }
}
