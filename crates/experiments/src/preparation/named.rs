//! What a user named one by one, as opposed to members of groups and of `--all`: those are tried, not requested.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager::{self, Manager};

use crate::preparation::baseline;

/// Names of managers, as rows name them, and of programs.
pub struct Named {
    managers: Vec<String>,
    programs: Vec<String>,
}

impl Named {
    /// What these words name; a baseline that is not the default was named.
    pub fn new(known: &[Manager], managers: &[String], baseline: &String, programs: Vec<String>) -> Named {
        let baseline = (baseline != baseline::DEFAULT).then_some(baseline);
        Named { managers: manager::names_of(known, managers.iter().chain(baseline)), programs }
    }

    /// Whether any of it was refused, or a program left out.
    pub fn is_refused(&self, experiment: &Experiment) -> bool {
        let is_named = |stack: &str| {
            // The second of two that are alike is called NAME#2.
            let mut rests = self.managers.iter().filter_map(|name| stack.strip_prefix(name.as_str()));
            rests.any(|rest| rest.is_empty() || rest.starts_with('#'))
        };
        let is_left_out = |name: &String| {
            self.programs.contains(name) && experiment.programs.iter().all(|program| program.name != *name)
        };
        experiment.refused.iter().any(|(program, stack, _)| is_named(stack) || is_left_out(program))
    }
}
