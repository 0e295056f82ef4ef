//! Whether a study's file can be carried out: what it names is there, and what it asks can be answered.

use super::definition::{Fault, Study};

impl Study {
    /// The first thing in it that cannot be. `file` is what the error calls it.
    pub fn check(&self, file: &str) -> Result<(), Fault> {
        let wrong = |place: String, what: &str| Fault::Wrong { file: file.into(), place, what: what.into() };
        for (number, step) in self.steps.iter().enumerate() {
            if self.steps[..number].iter().any(|other| other.id == step.id) {
                return Err(wrong(format!("step {}", step.id), "another step has this id"));
            }
        }
        Ok(())
    }
}

/// No two studies have a step of the same id, for figures are kept by it.
pub(super) fn apart(studies: &[Study], files: &[(&str, &str)]) -> Result<(), Fault> {
    for (number, study) in studies.iter().enumerate() {
        for step in &study.steps {
            if let Some(other) = studies[..number].iter().find(|other| other.step(&step.id).is_some()) {
                return Err(Fault::Wrong {
                    file: files.get(number).map(|(file, _)| file.to_string()).unwrap_or_default(),
                    place: format!("step {}", step.id),
                    what: format!("{} has a step of this id; figures are kept by it, so give it another", other.name),
                });
            }
        }
    }
    Ok(())
}
