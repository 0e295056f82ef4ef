//! What only some programs or managers have figures for: wall time, counters, heaps, and what a load reports.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::{Metric, ProgramTable, Row};
use heaptoll_experiment::observation::{Counters, Observation, Phase};

use crate::document::{Cell, Column, Table, Tone};
use crate::format::{self, NONE};

/// What a column has of a row, where there is anything.
type Value<'a> = dyn Fn(&Row) -> Option<String> + 'a;

/// Those figures, a column each that any row has.
pub(super) fn figures(program: &ProgramTable, observations: &[&Observation]) -> Table {
    let with_ratio = |row: &Row, metric: Metric, unit: f64| {
        let figure = row.figures.get(&metric)?;
        let median = match unit == 1.0 {
            true => format::median(metric, figure),
            false => format::significant(figure.median / unit),
        };
        let ratio = figure.ratio.as_ref().map(|ratio| format!(", {}", format::interval(ratio)));
        Some(median + &ratio.unwrap_or_default())
    };
    let counted = |row: &Row, count: fn(&Counters) -> Option<u64>, unit: f64| {
        let is_good =
            |o: &&&Observation| o.stack == row.stack && o.phase == Phase::Timed && o.outcome.is_ok();
        let good = observations.iter().filter(is_good);
        let counts: Vec<f64> = good.filter_map(|o| count(&o.counters)).map(|count| count as f64).collect();
        (!counts.is_empty()).then(|| format::significant(heaptoll_statistics::median(&counts) / unit))
    };
    let columns: [(&str, &Value); 7] = [
        ("good runs", &|row| Some(row.good.to_string())),
        ("wall s, ratio", &|row| with_ratio(row, Metric::Wall, 1.0)),
        ("instructions 10⁹, ratio", &|row| with_ratio(row, Metric::Instructions, 1e9)),
        ("cycles 10⁹", &|row| counted(row, |c| c.cycles, 1e9)),
        ("cache misses 10⁶", &|row| counted(row, |c| c.llc_misses, 1e6)),
        ("TLB misses 10⁶", &|row| counted(row, |c| c.dtlb_misses, 1e6)),
        ("involuntary switches a CPU s", &|row| row.involuntary_switches_per_cpu_s.map(format::significant)),
    ];
    let shown = columns.into_iter().filter(|(_, cell)| program.rows.iter().any(|row| cell(row).is_some()));
    Table::of(&program.rows)
        .text("manager", |row| row.stack.clone())
        .each(shown, |(title, _)| Column::figures(title), |row, (_, cell)| cell(row))
        .wide()
}

/// What a server's load, or a program itself, reports: figures down and managers across, for a load reports more
/// figures than there are managers. Below each are its ratios to the baseline. None without any.
pub(super) fn load(program: &ProgramTable, baseline: &str) -> Option<Table> {
    let names: BTreeSet<&String> = program.rows.iter().flat_map(|row| row.load_figures.keys()).collect();
    let stacks: Vec<&Row> = program.rows.iter().filter(|row| !row.load_figures.is_empty()).collect();
    let has_ratio = |name: &String| stacks.iter().any(|row| row.load_ratios.contains_key(name));
    // A median alone would look certain.
    let rows = names.into_iter().flat_map(|name| {
        let ratio = has_ratio(name).then_some((name, true));
        std::iter::once((name, false)).chain(ratio)
    });
    let cell = |(name, is_ratio): &(&String, bool), row: &&Row| match is_ratio {
        true => {
            let words = if row.stack == baseline { "baseline" } else { NONE };
            Cell::ratio(row.load_ratios.get(*name), words)
        }
        false => row.load_figures.get(*name).map(|value| format::significant(*value)).into(),
    };
    let table = Table::of(rows)
        .text("own report (medians)", |(name, is_ratio)| match is_ratio {
            true => Cell::text(format!("{name} ratio")).toned(Tone::Dim),
            false => Cell::text(*name),
        })
        .each(stacks.iter().copied(), |row| Column::figures(&row.stack), cell);
    (!stacks.is_empty()).then(|| table.wide())
}
