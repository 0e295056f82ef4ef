//! The paper's own programs in place of those that stand for them: their kin, other programs of today.
//!
//! A step states which original runs in place of which kin, where it is installed. All that selects figures by a kin's name
//! goes on doing so: a figure of an original is kept under its kin's name, and [`Study::as_run`] is the study as exhibits
//! and claims see it then. Several kin of one original are one program, under the first name.

use std::collections::BTreeMap;

use crate::definition::{Exhibit, Quantity, Side, Step, Study};
use crate::results::Ran;
use heaptoll_facts::Facts;
use heaptoll_units::each_once;

/// The originals of a step that ran, by the kin's name.
pub type Originals = BTreeMap<String, String>;

/// Puts the figures of a step's originals under the names of their kin. Gives the originals that have figures or a reason
/// for none; rows from before they were installed are the kin's own.
pub fn name_kin(facts: &mut Facts, step: &Step) -> Originals {
    let kin: BTreeMap<&str, &str> =
        step.originals.iter().map(|(kin, original)| (original.as_str(), kin.as_str())).collect();
    let mut ran = Originals::new();
    let measured = facts.measured.iter_mut().map(|fact| &mut fact.program);
    for program in measured.chain(facts.absent.iter_mut().map(|(program, ..)| program)) {
        if let Some(kin) = kin.get(program.as_str()) {
            let original = std::mem::replace(program, (*kin).to_owned());
            ran.insert(program.clone(), original);
        }
    }
    ran
}

/// The originals and the reserves that ran, by the step.
pub fn of_steps(steps: &[Ran]) -> BTreeMap<String, Originals> {
    let of = |step: &Ran| step.originals.clone().into_iter().chain(step.reserves.clone()).collect();
    steps.iter().map(|step| (step.planned.step.clone(), of(step))).collect()
}

/// What was left out of a step, for the same original or a reserve ran under another name: that name.
type Renamed = BTreeMap<String, String>;

/// The kin of a step whose original ran under another's name.
fn renamed(step: &Step, ran: &Originals) -> Renamed {
    let under = |original: &String| ran.iter().find(|(_, one)| *one == original).map(|(kin, _)| kin.clone());
    let left = step.originals.iter().filter(|(kin, _)| !ran.contains_key(*kin));
    left.filter_map(|(kin, original)| Some((kin.clone(), under(original)?))).collect()
}

fn rename(name: &mut String, renamed: &Renamed) {
    if let Some(other) = renamed.get(name) {
        name.clone_from(other);
    }
}

/// Renames programs, each of which is named once then.
fn rename_all(names: &mut Vec<String>, renamed: &Renamed) {
    names.iter_mut().for_each(|name| rename(name, renamed));
    *names = each_once(names.drain(..));
}

/// The same of rows, which may be `gawk under lea`.
fn rename_rows(rows: &mut Vec<String>, renamed: &Renamed) {
    for row in rows.iter_mut() {
        if let Some((program, manager)) = row.split_once(" under ") {
            let program = renamed.get(program).map_or(program, String::as_str);
            *row = format!("{program} under {manager}");
        }
    }
    rename_all(rows, renamed);
}

fn rename_quantity(quantity: &mut Quantity, steps: &BTreeMap<String, Renamed>) {
    let Some(renamed) = steps.get(&quantity.step) else { return };
    // With variants of the sides they are no programs, but what programs of both have before their variant.
    let whole = |side: &Side| side.variant.is_none();
    if whole(&quantity.of) && quantity.over.as_ref().is_none_or(whole) {
        rename_all(&mut quantity.programs, renamed);
    }
    let side = |side: &mut Side| side.program.iter_mut().for_each(|name| rename(name, renamed));
    side(&mut quantity.of);
    quantity.over.iter_mut().for_each(side);
}

fn rename_exhibit(
    exhibit: &mut Exhibit,
    names: &BTreeMap<String, String>,
    steps: &BTreeMap<String, Renamed>,
) {
    exhibit.rows.iter_mut().filter_map(|row| row.ours.as_mut()).for_each(|ours| rename_quantity(ours, steps));
    for column in &mut exhibit.columns {
        let of_another = column.step.as_ref().and_then(|step| steps.get(step)).into_iter().flatten();
        of_another
            .for_each(|(kin, ours)| _ = column.names.entry(kin.clone()).or_insert_with(|| ours.clone()));
    }
    let Some(renamed) = steps.get(&exhibit.step) else { return };
    rename_rows(&mut exhibit.programs, renamed);
    exhibit.program.iter_mut().for_each(|name| rename(name, renamed));
    // What stands for the paper's program by the study's names, or by having its name.
    let by_name = renamed.keys().map(|kin| (kin, kin)).filter(|(paper, _)| !names.contains_key(*paper));
    for (paper, ours) in names.iter().chain(by_name) {
        if renamed.contains_key(ours) {
            exhibit.names.entry(paper.clone()).or_insert_with(|| ours.clone());
        }
    }
    exhibit.names.values_mut().for_each(|ours| rename(ours, renamed));
}

impl Study {
    /// The study as it was run: each step with the originals and reserves that ran (by the step's id), and without the
    /// kin of which the same original ran under another name. What selects such a kin selects that name, and what
    /// selects a program that could not run its reserve.
    pub fn as_run(&self, ran: &BTreeMap<String, Originals>) -> Study {
        let mut study = self.clone();
        let mut steps = BTreeMap::new();
        for step in &mut study.steps {
            let there = ran.get(&step.id).cloned().unwrap_or_default();
            let (originals, reserves): (Originals, Renamed) =
                there.into_iter().partition(|(name, _)| step.originals.contains_key(name));
            let mut renamed = renamed(step, &originals);
            step.programs.retain(|program| !renamed.contains_key(program));
            renamed.extend(reserves);
            rename_all(&mut step.programs, &renamed);
            step.together.iter_mut().for_each(|group| rename_all(group, &renamed));
            step.originals = originals;
            if !renamed.is_empty() {
                steps.insert(step.id.clone(), renamed);
            }
        }
        // A control allocates in another way than the paper's: not so the paper's own.
        let is_kin = |control: &String| {
            study
                .steps
                .iter()
                .any(|step| step.programs.contains(control) && !step.originals.contains_key(control))
        };
        study.controls = self.controls.iter().filter(|control| is_kin(control)).cloned().collect();
        for exhibit in &mut study.exhibits {
            rename_exhibit(exhibit, &self.names.programs, &steps);
        }
        for test in study.claims.iter_mut().flat_map(|claim| &mut claim.tests) {
            if let Some(renamed) = steps.get(&test.quantity.step) {
                rename_all(&mut test.others, renamed);
            }
            rename_quantity(&mut test.quantity, &steps);
        }
        study
    }
}

#[cfg(test)]
#[path = "originals/tests.rs"]
mod tests;
