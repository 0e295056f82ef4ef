//! What a server's load, or a program itself, reports.

use heaptoll_experiment::comparison::{ProgramTable, Row};

use super::super::style::{Style, Tone, right};
use crate::format::{self, NONE};

/// The figures that the load printed about the server, or the program about itself.
pub fn load(table: &ProgramTable, style: &Style) -> String {
    let mut names: Vec<&str> =
        table.rows.iter().flat_map(|r| r.load_figures.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    // A load reports more figures than there are managers, so figures go down and managers across.
    let stacks: Vec<&Row> = table.rows.iter().filter(|row| !row.load_figures.is_empty()).collect();
    let heads: Vec<&str> = stacks.iter().map(|row| row.stack.as_str()).collect();
    let mut text = style.table(&[&["own report (medians)"][..], &heads].concat());
    for name in names {
        let figures = stacks
            .iter()
            .map(|row| row.load_figures.get(name).map_or(NONE.into(), |value| format::significant(*value)));
        let figures: Vec<String> = figures.collect();
        text.add_row(
            std::iter::once(style.cell(name, Tone::Plain))
                .chain(figures.iter().map(|figure| style.cell(figure, Tone::Plain))),
        );
    }
    style.pad(&mut text);
    right(&mut text, &(1..=stacks.len()).collect::<Vec<_>>());
    style.lines(&text)
}
