//! One program: what it is, its tables, then everything its reader must know.

use heaptoll_experiment::comparison::{Comparison, ProgramTable};
use heaptoll_experiment::experiment::{Experiment, StackInfo};

use super::super::exact;
use super::super::style::{Style, Tone};
use super::collections::collections;
use super::extras::Extras;
use super::figures::figures;
use super::load::load;
use super::lower_bounds::lower_bounds;
use crate::bounds;
use crate::format::{self, plural};

/// One program: what it is, its table, then everything its reader must know.
pub fn program(
    experiment: &Experiment,
    comparison: &Comparison,
    table: &ProgramTable,
    style: &Style,
    extras: Extras,
) -> String {
    let about = experiment.programs.iter().find(|p| p.name == table.program).map_or("", |p| p.about.as_str());
    let title = if about.is_empty() { table.program.clone() } else { format!("{}: {about}", table.program) };
    let mut out = style.paragraph("", &title, Tone::Bold);
    out.push_str(&figures(comparison, table, style));
    if table.rows.iter().any(|row| !row.load_figures.is_empty()) {
        out.push('\n');
        out.push_str(&load(table, style));
    }
    if let Some(exact) = &table.exact {
        out.push('\n');
        out.push_str(&exact::render(comparison, exact, style));
        out.push('\n');
    }
    if extras.collections && table.has_collections() {
        out.push('\n');
        out.push_str(&collections(table, style));
    }
    let found = comparison.lower_bounds.programs.iter().find(|bounds| bounds.program == table.program);
    if let Some(found) = found.filter(|found| extras.bounds && bounds::is_shown(found)) {
        out.push('\n');
        out.push_str(&lower_bounds(found, style));
    }
    out.push_str(&remarks(experiment, table, style));
    out
}

/// What went wrong, was refused or left out, and what its figures do not show.
fn remarks(experiment: &Experiment, table: &ProgramTable, style: &Style) -> String {
    let mut out = String::new();
    for row in table.rows.iter().filter(|row| !row.marks.is_empty()) {
        let text = format!(
            "{}: {} (left out; {} remain)",
            row.stack,
            row.marks.join(", "),
            plural(row.good as usize, "good row")
        );
        out.push_str(&style.paragraph("!", &text, Tone::Bad));
        if let Some(output) = last_output(experiment, &table.program, &row.stack) {
            out.push_str(&style.paragraph(" ", &format!("it wrote: {output}"), Tone::Plain));
        }
    }
    for text in warnings(experiment, &table.program) {
        out.push_str(&style.paragraph("!", &text, Tone::Plain));
    }
    for (_, stack, reason) in experiment.refused.iter().filter(|(program, ..)| *program == table.program) {
        out.push_str(&style.paragraph("-", &format!("{stack} refused: {reason}"), Tone::Plain));
    }
    for note in &table.notes {
        out.push_str(&style.paragraph("-", note, Tone::Plain));
    }
    for text in
        [table.disturbance.as_ref().map(format::disturbed), format::switches(table)].into_iter().flatten()
    {
        out.push_str(&style.paragraph("-", &text, Tone::Dim));
    }
    if let Some(ratio) = table.detectable_cpu_ratio {
        let text =
            format!("CPU differences under about {} could not be seen here", format::percent_off(ratio));
        out.push_str(&style.paragraph("-", &text, Tone::Dim));
    }
    out
}

/// The last line on standard error of the first run that failed: often the reason.
fn last_output<'a>(experiment: &'a Experiment, program: &str, stack: &str) -> Option<&'a str> {
    let rows = experiment.observations.iter().filter(|row| row.program == program && row.stack == stack);
    rows.filter(|row| row.phase.is_measured() && !row.outcome.is_ok())
        .find_map(|row| row.stderr_tail.lines().rev().map(str::trim).find(|line| !line.is_empty()))
}

/// The preflight's warnings, each once: most are about the program and so the same under every manager.
fn warnings(experiment: &Experiment, program: &str) -> Vec<String> {
    let stacks: Vec<&StackInfo> = experiment.stacks.iter().filter(|stack| stack.program == program).collect();
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for stack in &stacks {
        for warning in &stack.warnings {
            match found.iter_mut().find(|(text, _)| text == warning) {
                Some((_, names)) => names.push(stack.name.clone()),
                None => found.push((warning, vec![stack.name.clone()])),
            }
        }
    }
    let which = |names: &[String]| {
        if names.len() == stacks.len() { "every manager".to_owned() } else { format::and_list(names) }
    };
    found.into_iter().map(|(warning, names)| format!("{}: {warning}", which(&names))).collect()
}
