//! The stacks, and which of them were refused.

use heaptoll_experiment::experiment::Experiment;

use super::parts::{environment, folded};
use crate::document::{Cell, Column, Grid, Section};
use crate::format::NONE;

/// Where each stack comes from.
pub(super) fn section(experiment: &Experiment, palette: &[String]) -> Section {
    let row = |name: &String| {
        let found = experiment.stacks.iter().filter(|stack| stack.name == *name);
        let first = found.clone().next();
        let text = |text: Option<String>| {
            Cell::text(text.filter(|text| !text.is_empty()).unwrap_or_else(|| NONE.to_owned()))
        };
        let warnings = found.flat_map(|stack| {
            stack.warnings.iter().map(move |warning| format!("{}: {warning}", stack.program))
        });
        vec![
            Cell::text(name),
            text(first.map(|stack| stack.version.clone())),
            Cell { marks: warnings.collect(), ..text(first.map(|stack| stack.origin.clone())) },
            text(first.map(|stack| stack.preload.join(" "))),
            text(first.map(|stack| environment(&stack.environment))),
        ]
    };
    let grid = Grid {
        columns: vec![
            Column::text("manager"),
            Column::text("version"),
            Column::text("origin"),
            Column::code("preloaded"),
            Column::code("environment"),
        ],
        rows: palette.iter().map(row).collect(),
        wide: true,
        ..Grid::default()
    };
    let managers = folded("Managers: versions and origins", grid);
    let refused = experiment.refused.iter();
    let refused: Vec<Vec<Cell>> =
        refused.map(|(program, stack, reason)| [stack, program, reason].map(Cell::text).into()).collect();
    let mut items = vec![managers];
    if !refused.is_empty() {
        let columns = ["stack", "program", "reason"].map(Column::text).into();
        items.push(folded("Refused", Grid { columns, rows: refused, wide: true, ..Grid::default() }));
    }
    Section { title: "Managers".into(), text: vec![], items }
}
