//! Reads a study from the text of its file.

use heaptoll_experiment::experiment::Pairing;

use heaptoll_command::version;
use heaptoll_report::format::printable;
use serde::Deserialize;

use super::definition::{Fault, Side, StepKind, Study};
use super::figures;

/// What is read of a file before it is known that this version can read it.
#[derive(Deserialize)]
struct Needs {
    #[serde(default)]
    heaptoll: Option<String>,
}

fn unreadable(file: &str, error: toml::de::Error) -> Fault {
    Fault::Unreadable { file: file.into(), error: Box::new(error) }
}

fn needs_no_later(needed: &str, file: &str) -> Result<(), Fault> {
    if version::numbers(needed).is_none() {
        let what = format!("`{}` is not a version; write it like {}", printable(needed), version::OURS);
        return Err(Fault::Wrong { file: file.into(), place: "heaptoll".into(), what });
    }
    match version::is_later(needed) {
        true => Err(Fault::Later { file: file.into(), needed: needed.into() }),
        false => Ok(()),
    }
}

impl Study {
    /// A study from the text of its file, checked. `file` is what errors call it.
    pub fn parse(text: &str, file: &str) -> Result<Study, Fault> {
        // Before anything else: a later version may have fields that this one does not know.
        let needs: Needs = toml::from_str(text).map_err(|error| unreadable(file, error))?;
        if let Some(needed) = needs.heaptoll {
            needs_no_later(&needed, file)?;
        }
        let mut study: Study = toml::from_str(text).map_err(|error| unreadable(file, error))?;
        study.check(file)?;
        for at in 0..study.steps.len() {
            let step = &study.steps[at];
            if step.kind == StepKind::Run && step.pairing.is_none() && study.compares_managers(&step.id) {
                study.steps[at].pairing = Some(Pairing::Lockstep);
            }
        }
        Ok(study)
    }

    /// Whether a claim compares the CPU time of different managers on one program of a step.
    fn compares_managers(&self, step: &str) -> bool {
        let tests = self.claims.iter().flat_map(|claim| &claim.tests);
        tests.map(|test| &test.quantity).filter(|quantity| quantity.step == step).any(|quantity| {
            let Some(over) = &quantity.over else { return false };
            let is_cpu = |side: &Side| side.metric.as_ref().unwrap_or(&quantity.metric) == figures::AT_ONCE;
            let of = &quantity.of;
            let same_program = of.variant == over.variant && of.program == over.program;
            is_cpu(of) && is_cpu(over) && same_program && !over.managers.is_empty()
        })
    }
}
