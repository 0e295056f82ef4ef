//! What a user named one by one, as opposed to members of groups and of `--all`: those are tried, not requested. It is
//! stored with the settings, so that an experiment that is continued ends as one that ran at once.

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::manager::{self, Manager};

/// Names of managers, as rows name them, and of programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Managers; the baseline among them where it is not the default.
    pub managers: Vec<String>,
    /// Programs of the catalog.
    pub programs: Vec<String>,
}

impl Named {
    /// What these words name; groups and what is not known name nothing.
    pub fn new<'a>(
        known: &[Manager],
        managers: impl IntoIterator<Item = &'a String>,
        programs: &[String],
    ) -> Named {
        Named { managers: manager::names_of(known, managers), programs: programs.into() }
    }

    fn is_manager(&self, stack: &str) -> bool {
        // The second of two that are alike is called NAME#2.
        let mut rests = self.managers.iter().filter_map(|name| stack.strip_prefix(name.as_str()));
        rests.any(|rest| rest.is_empty() || rest.starts_with('#'))
    }
}

impl Experiment {
    /// Whether a manager that the user named was refused, or a program left out. Where it is not stored what was named,
    /// everything counts as named, and each refusal as one of it.
    pub fn refused_what_was_named(&self) -> bool {
        let Some(named) = &self.settings.named else { return !self.refused.is_empty() };
        let is_left_out = |name: &String| {
            named.programs.contains(name) && self.programs.iter().all(|program| program.name != *name)
        };
        self.refused.iter().any(|(program, stack, _)| named.is_manager(stack) || is_left_out(program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::experiment;

    fn refuses(named: Option<Named>, program: &str, stack: &str) -> bool {
        let mut experiment = experiment(&["glibc"]);
        experiment.settings.named = named;
        experiment.refused.push((program.into(), stack.into(), "a reason".into()));
        experiment.refused_what_was_named()
    }

    #[test]
    fn a_refusal_counts_where_its_manager_or_its_program_was_named() {
        let named =
            || Some(Named { managers: vec!["lea".into()], programs: vec!["gone".into(), "prog".into()] });
        assert!(refuses(named(), "prog", "lea") && refuses(named(), "prog", "lea#2"));
        assert!(!refuses(named(), "prog", "leap"), "another manager, of a group");
        assert!(refuses(named(), "gone", "glibc"), "no program of the experiment any more");
        assert!(!refuses(named(), "prog", "tithe"), "still a program of the experiment");
    }

    #[test]
    fn every_refusal_counts_in_a_file_from_before_names_were_stored() {
        assert!(refuses(None, "prog", "tithe"));
        assert!(!experiment(&["glibc"]).refused_what_was_named());
    }
}
