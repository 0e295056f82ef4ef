//! Reads a study from the text of its file.

use std::collections::BTreeSet;

use heaptoll_experiment::experiment::Pairing;

use heaptoll_command::version;
use heaptoll_report::format::printable;
use serde::Deserialize;

use super::check::at_fault;
use super::definition::{Fault, Quantity, Side, Step, StepKind, Study};
use super::pairs::{of_side, requested};
use super::variant::base;
use heaptoll_experiment::facts::AT_ONCE;

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
        study.name_programs().map_err(|wrong| at_fault(file, wrong))?;
        study.check(file)?;
        for at in 0..study.steps.len() {
            let step = &study.steps[at];
            if step.kind != StepKind::Run || step.pairing == Some(Pairing::Interleaved) {
                continue;
            }
            let (forms, managers) = (study.compared_forms(step), study.compares_managers(&step.id));
            let Step { pairing, together, .. } = &mut study.steps[at];
            if managers || !forms.is_empty() {
                *pairing = Some(Pairing::Lockstep);
            }
            if together.is_empty() {
                *together = forms;
            }
        }
        Ok(study)
    }

    /// The ratios of CPU times that claims are on, of a step.
    fn compared_cpu<'a>(&'a self, step: &'a str) -> impl Iterator<Item = (&'a Quantity, &'a Side)> {
        let tests = self.claims.iter().flat_map(|claim| &claim.tests).map(|test| &test.quantity);
        tests.filter(move |quantity| quantity.step == step).filter_map(|quantity| {
            let is_cpu = |side: &Side| side.metric.as_ref().unwrap_or(&quantity.metric) == AT_ONCE;
            let over = quantity.over.as_ref()?;
            (is_cpu(&quantity.of) && is_cpu(over)).then_some((quantity, over))
        })
    }

    /// Whether a claim compares the CPU time of different managers on one program of a step.
    fn compares_managers(&self, step: &str) -> bool {
        self.compared_cpu(step).any(|(Quantity { of, .. }, over)| {
            of.variant == over.variant && of.program == over.program && !over.managers.is_empty()
        })
    }

    /// Groups of forms of one program whose CPU times claims compare, in the order of the step.
    fn compared_forms(&self, step: &Step) -> Vec<Vec<String>> {
        let mut groups: Vec<BTreeSet<String>> = Vec::new();
        for (quantity, over) in self.compared_cpu(&step.id) {
            for program in requested(quantity, step) {
                let pair = BTreeSet::from([of_side(&program, &quantity.of), of_side(&program, over)]);
                let bases: BTreeSet<&str> = pair.iter().map(|name| base(name)).collect();
                if pair.len() == 2 && bases.len() == 1 {
                    let (meeting, rest): (Vec<_>, Vec<_>) =
                        groups.into_iter().partition(|group| !group.is_disjoint(&pair));
                    groups = rest;
                    groups.push(meeting.into_iter().flatten().chain(pair).collect());
                }
            }
        }
        let place = |name: &String| step.programs.iter().position(|other| other == name);
        let mut ordered: Vec<Vec<String>> = groups.into_iter().map(Vec::from_iter).collect();
        ordered.iter_mut().for_each(|group| group.sort_by_key(place));
        ordered.sort_by_key(|group| group.first().and_then(place));
        ordered
    }
}
