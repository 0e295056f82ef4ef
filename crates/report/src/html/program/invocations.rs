//! Every invocation of a program, and those that did not end well.

use heaptoll_experiment::cell::Value;
use heaptoll_experiment::columns::headed;
use heaptoll_experiment::observation::Observation;

use super::super::charts;
use super::super::palette::Palette;
use super::super::views::Chip;
use crate::format::{self, NONE};

/// One invocation.
pub struct Invocation {
    /// Position.
    pub order: u32,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Why it was made.
    pub phase: &'static str,
    /// Stack.
    pub stack: String,
    /// CPU seconds.
    pub cpu: String,
    /// Elapsed seconds.
    pub wall: String,
    /// Peak MiB.
    pub rss: String,
    /// Figures that are shown as they are, under the headings of their columns.
    pub figures: Vec<String>,
    /// Load average before it.
    pub load: String,
    /// Share of the span that was stolen, percent.
    pub steal: String,
    /// Share of it that interrupts took, percent.
    pub interrupts: String,
    /// Share of the processors that ran other work, percent, and whether the span was loaded.
    pub other_work: String,
    /// How it ended.
    pub outcome: String,
    /// Whether well.
    pub ok: bool,
}

/// Rows that ended alike.
pub struct Bad {
    /// Stack.
    pub chip: Chip,
    /// How they ended.
    pub outcome: String,
    /// Which ones.
    pub which: String,
    /// The end of standard error.
    pub stderr: String,
}

/// One row as text.
pub fn invocation(row: &Observation) -> Invocation {
    let disturbance = row.disturbance.as_ref();
    Invocation {
        order: row.order,
        repetition: row.repetition + 1,
        phase: row.phase.as_str(),
        stack: format::printable(&row.stack),
        cpu: format::seconds(charts::cpu_s(row)),
        wall: format::seconds(row.wall_s),
        rss: format::mib_from_kib(row.peak_rss_kib as f64),
        figures: headed().map(|(_, column)| text((column.get)(row))).collect(),
        load: format!("{:.2}", row.load_average),
        steal: disturbance.map_or(NONE.to_owned(), |found| format::rounded_percent(found.steal)),
        interrupts: disturbance.map_or(NONE.to_owned(), |found| format::rounded_percent(found.interrupts)),
        other_work: disturbance.map_or(NONE.to_owned(), |found| {
            let loaded = if found.is_loaded() == Some(true) { ", loaded" } else { "" };
            format::rounded_percent(found.other_work) + loaded
        }),
        outcome: format::printable(&row.outcome.to_string()),
        ok: row.outcome.is_ok(),
    }
}

fn text(cell: Value) -> String {
    match cell {
        Value::Missing => NONE.to_owned(),
        Value::Integer(value) => format::count(value as f64),
        Value::Real(value) => format::significant(value),
        Value::Text(value) => format::printable(&value),
    }
}

/// Bad rows, those of one stack with the same ending and output grouped.
pub fn bad(rows: &[&Observation], palette: &Palette) -> Vec<Bad> {
    let mut groups: Vec<(&Observation, Vec<u32>)> = Vec::new();
    for row in rows.iter().filter(|row| !row.outcome.is_ok()) {
        let alike = |first: &Observation| {
            first.stack == row.stack && first.outcome == row.outcome && first.stderr_tail == row.stderr_tail
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, orders)) => orders.push(row.order),
            None => groups.push((row, vec![row.order])),
        }
    }
    let group = |(row, orders): (&Observation, Vec<u32>)| {
        let orders: Vec<String> = orders.iter().map(u32::to_string).collect();
        let noun = if orders.len() == 1 { "invocation" } else { "invocations" };
        Bad {
            chip: Chip::of(&row.stack, palette),
            outcome: format::printable(&row.outcome.to_string()),
            which: format!("{noun} {}", format::and_list(&orders)),
            stderr: format::printable_lines(row.stderr_tail.trim_end()),
        }
    };
    groups.into_iter().map(group).collect()
}
