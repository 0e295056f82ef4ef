//! One program: its table, charts, everything its reader must know, and what can be unfolded.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::{Comparison, Metric, ProgramTable, Row};
use heaptoll_experiment::disturbance::Disturbed;
use heaptoll_experiment::experiment::{Experiment, ProgramInfo, StackInfo};
use heaptoll_experiment::kept_input;
use heaptoll_experiment::manager::collects;
use heaptoll_experiment::observation::{Observation, Outcome};

use super::parts::{Extras, environment, folded};
use super::{bounds, charts, collections, exact, figures, heaps, invocations, more, nodes, peaks, varied};
use crate::document::{Cell, Column, Form, Item, Part, Section, Table};
use crate::format::{self, and_list, plural};
use heaptoll_units::{first_few, groups};

/// The section of a program, whose rows are in the experiment.
pub fn section(
    experiment: &Experiment,
    comparison: &Comparison,
    table: &ProgramTable,
    extras: Extras,
) -> Section {
    let rows: Vec<&Observation> =
        experiment.observations.iter().filter(|row| row.program == table.program).collect();
    let info = experiment.program(&table.program);
    let about = info.map(|info| info.about.clone()).filter(|about| !about.is_empty());
    let shown = invocations::shown(&rows, comparison.tables.len());
    let charts = charts::of_program(experiment, comparison, table, &shown);
    // The ratios are the picture of the table under them; what only explains them comes after it.
    let (ratios, others): (Vec<_>, Vec<_>) = charts.into_iter().partition(|chart| chart.form == Form::Ratios);
    let mut items: Vec<Item> = ratios.into_iter().map(Item::Chart).collect();
    let warnings = warnings(experiment, table);
    if table.rows.is_empty() {
        items.push(Item::Warnings(vec!["No row was measured.".into()]));
        items.push(Item::Warnings(warnings));
    } else {
        let mut figures = figures::table(comparison, table, &experiment.tracks, notes(experiment, table));
        let space = if extras.explain { usize::MAX } else { NOTES.saturating_sub(warnings.len()).max(1) };
        let more = figures.notes.split_off(space.min(figures.notes.len()));
        items.extend([Item::Table(figures), Item::Warnings(warnings)]);
        items.extend((!more.is_empty()).then(|| more_notes(more)));
    }
    items.extend(nodes::part(table).map(Item::Part));
    items.extend(more::load(table, &comparison.baseline).map(Item::Table));
    items.extend(heaps::part(comparison, Some(&table.program)).map(Item::Part));
    items.extend(varied::part(comparison, Some(&table.program)).map(Item::Part));
    items.extend(others.into_iter().map(Item::Chart));
    items.extend(table.exact.as_ref().map(|found| Item::Part(exact::part(comparison, found))));
    items.extend(collections::part(table, extras).map(Item::Part));
    items.extend(bounds::part(comparison, &table.program, extras).map(Item::Part));
    items.extend(invocations::bad(&rows).map(|table| folded("What went wrong", table)));
    items.push(folded("More figures", more::figures(table, &rows)));
    items.push(folded("What the preflight proved", proofs(experiment, table)));
    let peaks = peaks::table(experiment, table);
    items.extend(peaks.map(|peaks| folded("Peak memory in three ways, and its mean over time", peaks)));
    items.extend(info.map(|info| folded("How it is run", how(info))));
    Section { title: table.program.clone(), text: about.into_iter().collect(), items }
}

/// CPU time and memory alone, and what went wrong: for a program whose experiment still runs.
pub fn brief(experiment: &Experiment, comparison: &Comparison, table: &ProgramTable) -> Section {
    let mut found = warnings(experiment, table);
    found.extend(preflight_warnings(experiment, &table.program));
    let items = vec![Item::Table(figures::brief(comparison, table)), Item::Warnings(found)];
    Section { title: table.program.clone(), text: vec![], items }
}

/// Most lines under a table that nobody requested; where runs failed, one note stays, which may have the cause.
const NOTES: usize = 2;
/// A table that cannot show differences of this size suggests more repetitions.
pub(super) const COARSE: f64 = 0.05;
/// How a program dies that follows a wrong pointer.
const SIGSEGV: i32 = 11;
/// Repetitions that are advised where there are too few for any interval.
const ADVISED: u32 = 10;

/// The notes that no table has space for.
fn more_notes(text: Vec<String>) -> Item {
    Part::new("More notes", None::<Item>).text(text).folded(true, "--explain").into()
}

/// How many repetitions would show more, where the table shows too little.
pub(super) fn advised(experiment: &Experiment, table: &ProgramTable) -> Option<u32> {
    let has_ratio = |row: &Row| row.figures.values().any(|figure| figure.ratio.is_some());
    match table.detectable_cpu_ratio {
        Some(ratio) if ratio - 1.0 > COARSE => Some(4 * experiment.repetitions()),
        None if table.rows.iter().any(has_ratio) && experiment.repetitions() < ADVISED => Some(ADVISED),
        _ => None,
    }
}

/// The smallest CPU differences that its rows could show, as [`format::detectable`] gives them.
pub(super) fn detectable(table: &ProgramTable) -> Option<[(&str, f64); 2]> {
    let ratio = |row: &Row| row.figures.get(&Metric::Cpu)?.ratio;
    format::detectable(table.rows.iter().filter_map(|row| Some((row.stack.as_str(), ratio(row)?))))
}

/// What was refused, and what the figures do not show; what changes their reading first.
fn notes(experiment: &Experiment, table: &ProgramTable) -> Vec<String> {
    let refused = experiment.refused.iter().filter(|(program, ..)| *program == table.program);
    let refused = refused.map(|(_, stack, reason)| format!("{stack} refused: {reason}"));
    let (doubts, asides) = table.notes.split_at(table.notes.len().saturating_sub(table.asides));
    let mut notes: Vec<String> = refused.chain(preflight_warnings(experiment, &table.program)).collect();
    notes.extend_from_slice(doubts);
    let (loaded, idle): (Vec<&Disturbed>, Vec<&Disturbed>) =
        table.disturbance.iter().partition(|found| found.loaded > 0);
    notes.extend(loaded.into_iter().map(format::disturbed));
    notes.extend(detectable(table).map(|found| {
        let seen = format::detectable_in_words(found);
        let more = match advised(experiment, table) {
            Some(repetitions) => format!("; four times the repetitions halve that (-n {repetitions})"),
            None => String::new(),
        };
        format!("Smallest detectable CPU difference: {seen}{more}")
    }));
    notes.extend_from_slice(asides);
    notes.extend(idle.into_iter().map(format::disturbed));
    notes.extend(format::switches(table));
    notes
}

/// What went wrong or was left out.
fn warnings(experiment: &Experiment, table: &ProgramTable) -> Vec<String> {
    let mut found = Vec::new();
    // That a heap is too small is a result, which the figures state.
    for row in experiment.failed_rows(table) {
        let good = plural(row.good as usize, "good row");
        let when = repetitions(failed(experiment, &table.program, &row.stack));
        let mut text = format!("{}: {} in {when} (left out; {good} remain)", row.stack, row.marks.join(", "));
        if let Some(output) = last_output(experiment, &table.program, &row.stack) {
            text += &format!("; it wrote: {output}");
        }
        if hides_pointers(experiment, table, &row.stack) {
            text += "; every manager that does not collect did well: the likely cause is hidden pointers, see \
                     docs/method/limits.md#tithe";
        }
        found.push(text);
    }
    found.extend(nodes::disagreements(table, &experiment.baseline));
    found
}

/// The measured rows of a stack that failed.
fn failed<'a>(
    experiment: &'a Experiment,
    program: &'a str,
    stack: &'a str,
) -> impl Iterator<Item = &'a Observation> {
    experiment.rows(program, stack).filter(|row| row.phase.is_measured() && row.outcome.is_failure())
}

/// Whether a collector failed as one does that misses pointers, and all managers that do not collect did well.
fn hides_pointers(experiment: &Experiment, table: &ProgramTable, stack: &str) -> bool {
    let mut failures = failed(experiment, &table.program, stack);
    let mut others = table.rows.iter().filter(|row| !collects(&row.stack)).peekable();
    collects(stack)
        && failures.all(|row| matches!(row.outcome, Outcome::WrongOutput | Outcome::Signal(SIGSEGV)))
        && others.peek().is_some()
        && others.all(|row| row.marks.is_empty())
}

/// Most repetitions that are named.
const REPETITIONS_NAMED: usize = 5;

/// Where rows failed: `repetition 3`, `repetitions 1, 2 and 4`, from 1.
fn repetitions<'a>(failed: impl Iterator<Item = &'a Observation>) -> String {
    let numbers: BTreeSet<u32> = failed.map(|row| row.repetition + 1).collect();
    let named = first_few(numbers.iter().map(u32::to_string), REPETITIONS_NAMED);
    format!("repetition{} {named}", if numbers.len() == 1 { "" } else { "s" })
}

/// The last line on standard error of the first run that failed: often the reason.
fn last_output<'a>(experiment: &'a Experiment, program: &'a str, stack: &'a str) -> Option<&'a str> {
    failed(experiment, program, stack)
        .find_map(|row| row.stderr_tail.lines().rev().map(str::trim).find(|line| !line.is_empty()))
}

/// The preflight's warnings, each once: most are about the program and so the same under every manager.
fn preflight_warnings(experiment: &Experiment, program: &str) -> Vec<String> {
    let all = experiment.stacks_of(program).count();
    let of = |stack: &'_ StackInfo| {
        let name = stack.name.clone();
        stack.warnings.iter().map(move |warning| (warning.clone(), name.clone())).collect::<Vec<_>>()
    };
    let found = groups(experiment.stacks_of(program).flat_map(of));
    let which =
        |names: &[String]| if names.len() == all { "every manager".to_owned() } else { and_list(names) };
    found.into_iter().map(|(warning, names)| format!("{}: {warning}", which(&names))).collect()
}

/// What the preflight proved of every stack.
fn proofs(experiment: &Experiment, table: &ProgramTable) -> Table {
    Table::of(experiment.stacks_of(&table.program))
        .text("stack", |stack| stack.name.clone())
        .text("proof", |stack| Cell { marks: stack.warnings.clone(), ..Cell::text(&stack.proof) })
        .wide()
}

/// Command, input, environment and load, where there are any.
fn how(info: &ProgramInfo) -> Table {
    let mut facts = vec![("command", format::shell_command(&info.command))];
    facts.extend(info.stdin.as_ref().map(|stdin| ("standard input", kept_input::shown(stdin))));
    if !info.environment.is_empty() {
        facts.push(("environment", environment(&info.environment)));
    }
    facts.extend(info.serve.as_ref().map(|serve| ("load", format::shell_command(&serve.load))));
    facts
        .extend(info.expected_digest.as_ref().map(|digest| ("expected output", format!("SHA-256 {digest}"))));
    Table::of(facts).text("", |(name, _)| *name).column(Column::code(""), |(_, text)| text.clone()).wide()
}
