//! Geometric means over programs, and every program's ratios next to them.

use heaptoll_experiment::comparison::{Comparison, Figure, Metric, OverallRow, ProgramTable, Row};
use heaptoll_experiment::manager::collects;
use heaptoll_statistics::Interval;

use super::parts::{Extras, name};
use super::{bounds, charts, heaps, varied};
use crate::document::{Cell, Column, Item, Link, Part, Section, Table, section_id};
use crate::format::{self, NONE, TOO_FEW};

/// The section; none with one program.
pub(super) fn section(comparison: &Comparison, palette: &[String], extras: Extras) -> Option<Section> {
    let bounds = bounds::overall(comparison, extras).map(Item::Part);
    if comparison.overall.is_empty() && bounds.is_none() {
        return None;
    }
    let words = |row: &OverallRow| if row.stack == comparison.baseline { "baseline" } else { TOO_FEW };
    let means = Table::of(&comparison.overall)
        .text("manager", |row| name(&row.stack, &comparison.baseline))
        .figure("programs", |row| row.programs.to_string())
        .figure("CPU ratio", |row| Cell::ratio(row.cpu.as_ref(), words(row)))
        .figure("memory ratio", |row| Cell::ratio(row.peak_rss.as_ref(), words(row)))
        .text("verdict", |row| verdict(comparison, row));
    let mut items: Vec<Item> = charts::overall(comparison, palette).into_iter().map(Item::Chart).collect();
    items.push(Item::Table(means.wide()));
    items.extend(heaps::part(comparison, None).map(Item::Part));
    items.extend(varied::part(comparison, None).map(Item::Part));
    let matrices = [("CPU ratio", Metric::Cpu), ("Peak memory ratio", Metric::PeakRss)];
    let before = BEFORE + extras.sections_before;
    let matrices = matrices.map(|(title, metric)| matrix(title, metric, comparison, palette, before));
    items.extend(matrices.map(Item::Part));
    items.extend(bounds);
    Some(Section { title: "overall: geometric means over programs".into(), text: vec![], items })
}

/// Sections before those of the programs: the front and the means.
const BEFORE: usize = 2;

/// One metric of every program under every stack.
fn matrix(title: &str, metric: Metric, comparison: &Comparison, palette: &[String], before: usize) -> Part {
    let stacks: Vec<&String> = palette.iter().filter(|name| **name != comparison.baseline).collect();
    let cell = |table: &ProgramTable, stack: &str| {
        let row = table.rows.iter().find(|row| row.stack == stack);
        Cell::ratio(row.and_then(|row| row.figures.get(&metric)?.ratio.as_ref()), NONE)
    };
    let program = |(at, table): &(usize, &ProgramTable)| {
        let link = Link { id: section_id(before + at), text: String::new() };
        Cell { links: vec![link], ..Cell::text(&table.program) }
    };
    let table = Table::of(comparison.tables.iter().enumerate()).text("program", program).each(
        stacks,
        |stack| Column::figures(stack),
        |(_, table), stack| cell(table, stack),
    );
    Part::new(format!("{title}, by program"), [table.wide()]).folded(true, "")
}

/// The claims of one row in words.
pub(super) fn verdict(comparison: &Comparison, row: &OverallRow) -> String {
    if row.stack == comparison.baseline {
        return "baseline".to_owned();
    }
    format::verdict(&[(row.cpu, "CPU"), (row.peak_rss, "memory")])
}

/// What was found of a stack.
pub(super) struct Found<'a> {
    pub(super) stack: &'a str,
    /// Its ratio of CPU time to the baseline's.
    pub(super) cpu: Option<Interval>,
    /// Its ratio of peak memory to the baseline's.
    pub(super) memory: Option<Interval>,
    pub(super) verdict: String,
    /// Whether runs of it failed.
    pub(super) fails: bool,
}

/// What was found of each stack, over all programs where there are several.
pub(super) fn found<'a>(comparison: &'a Comparison) -> Vec<Found<'a>> {
    let of_means = |row: &'a OverallRow| Found {
        stack: &row.stack,
        cpu: row.cpu,
        memory: row.peak_rss,
        verdict: verdict(comparison, row),
        fails: false,
    };
    let ratio = |row: &Row, metric| row.figures.get(&metric).and_then(|figure: &Figure| figure.ratio);
    let of_program = |row: &'a Row| Found {
        stack: &row.stack,
        cpu: ratio(row, Metric::Cpu),
        memory: ratio(row, Metric::PeakRss),
        verdict: row.verdict.clone(),
        fails: !row.marks.is_empty(),
    };
    match (&comparison.tables[..], comparison.overall.is_empty()) {
        ([one], true) => one.rows.iter().map(of_program).collect(),
        _ => comparison.overall.iter().map(of_means).collect(),
    }
}

/// A stack's name with how often it collected on all programs, where that is known: `tithe with 12 collections a run`.
pub(super) fn with_collections(comparison: &Comparison, stack: &str) -> String {
    let rows = comparison.tables.iter().flat_map(|table| &table.rows).filter(|row| row.stack == stack);
    let counts: Vec<f64> = rows.filter_map(|row| Some(row.collections?.count)).collect();
    match counts.iter().sum::<f64>() {
        _ if counts.is_empty() => stack.to_owned(),
        // Other managers report that, too.
        0.0 if !collects(stack) => stack.to_owned(),
        0.0 => format!("{stack} without a collection"),
        1.0 => format!("{stack} with 1 collection a run"),
        many => format!("{stack} with {} collections a run", format::count(many)),
    }
}
