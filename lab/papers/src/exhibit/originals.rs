//! The paper's own programs in an exhibit: how they are marked, which they are, and why others are shown.

use std::collections::BTreeMap;

use heaptoll_units::{and_list, plural};

use crate::definition::{Exhibit, Step, Study};

/// After the name of what stands for a program of the paper, where the paper's own ran.
pub(super) const THE_PAPERS_OWN: &str = " (the paper's own)";

/// The programs of an exhibit, by step.
fn programs<'a>(study: &'a Study, exhibit: &'a Exhibit) -> impl Iterator<Item = (&'a Step, &'a String)> {
    let shown = move |program: &str| {
        let row = |row: &String| row == program || row.split(" under ").next() == Some(program);
        match (&exhibit.program, exhibit.programs.as_slice()) {
            (Some(one), _) => one == program,
            (None, []) => true,
            (None, named) => named.iter().any(row),
        }
    };
    let steps = exhibit.steps().into_iter().filter_map(move |id| study.step(id));
    steps.flat_map(move |step| step.programs.iter().filter(move |one| shown(one)).map(move |one| (step, one)))
}

/// Which of an exhibit's programs are the paper's own, in the order of its steps.
pub(super) fn note(study: &Study, exhibit: &Exhibit) -> Option<String> {
    let named = |(step, program): (&Step, &String)| {
        let of = if step.id == exhibit.step { String::new() } else { format!(" in step {}", step.id) };
        step.originals.get(program).map(|original| format!("{program} is {original}{of}"))
    };
    let all: Vec<String> = programs(study, exhibit).filter_map(named).collect();
    (!all.is_empty()).then(|| format!("The paper's own programs: {}.", and_list(&all)))
}

/// Of an exhibit in which the paper's own programs are fewer than the others, why these are in it.
pub(crate) fn kin_note(study: &Study, exhibit: &Exhibit) -> Option<String> {
    let why = study.kin.as_ref()?;
    // A step may run an original under its own name.
    let originals: Vec<&str> = study
        .steps
        .iter()
        .flat_map(|step| step.originals.values())
        .filter_map(|one| one.split(':').next())
        .collect();
    let mut own: BTreeMap<&str, bool> = BTreeMap::new();
    for (step, program) in programs(study, exhibit) {
        let base = program.split(':').next().unwrap_or(program);
        *own.entry(program.as_str()).or_default() |=
            step.originals.contains_key(program) || originals.contains(&base);
    }
    let (all, own) = (own.len(), own.values().filter(|own| **own).count());
    let how_many = if own == 0 { "none".into() } else { own.to_string() };
    let are = if own == 1 || own == 0 { "is" } else { "are" };
    (2 * own < all)
        .then(|| format!("Of {}, {how_many} {are} the paper's own: {why}.", plural(all, "program")))
}
