//! The stacks, and which of them were refused.

use heaptoll_experiment::experiment::{Experiment, StackInfo};

use super::parts::{environment, folded};
use crate::document::{Cell, Column, Section, Table};

/// Where each stack comes from.
pub(super) fn section(experiment: &Experiment, palette: &[String]) -> Section {
    let text = |name: &str, of: fn(&StackInfo) -> String| {
        let stack = experiment.stacks.iter().find(|stack| stack.name == name);
        stack.map(of).filter(|text| !text.is_empty())
    };
    let warnings = |name: &str| {
        let stacks = experiment.stacks.iter().filter(|stack| stack.name == name);
        let warnings = stacks.flat_map(|stack| {
            stack.warnings.iter().map(move |warning| format!("{}: {warning}", stack.program))
        });
        warnings.collect()
    };
    let managers = Table::of(palette)
        .text("manager", |name| name.as_str())
        .text("version", |name| text(name, |stack| stack.version.clone()))
        .text("origin", |name| Cell {
            marks: warnings(name),
            ..text(name, |stack| stack.origin.clone()).into()
        })
        .column(Column::code("preloaded"), |name| text(name, |stack| stack.preload.join(" ")))
        .column(Column::code("environment"), |name| text(name, |stack| environment(&stack.environment)));
    let mut items = vec![folded("Managers: versions and origins", managers.wide())];
    if !experiment.refused.is_empty() {
        let refused = Table::of(&experiment.refused)
            .text("stack", |(_, stack, _)| stack.clone())
            .text("program", |(program, ..)| program.clone())
            .text("reason", |(.., reason)| reason.clone());
        items.push(folded("Refused", refused.wide()));
    }
    Section { title: "Managers".into(), text: vec![], items }
}
