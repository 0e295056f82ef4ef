//! What only some programs or managers have figures for: wall time, counters, heaps, and what a load reports.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::{Metric, ProgramTable, Row};
use heaptoll_experiment::observation::{Counters, Observation, Phase};

use crate::document::{Cell, Column, Grid, Tone};
use crate::format::{self, NONE};

/// Those figures, a column each that any row has.
pub(super) fn grid(table: &ProgramTable, observations: &[&Observation]) -> Grid {
    let mut columns = vec![Column::text("manager")];
    let mut rows: Vec<Vec<Cell>> = table.rows.iter().map(|row| vec![Cell::text(&row.stack)]).collect();
    let mut column = |heading: &str, cell: &dyn Fn(&Row) -> Option<String>| {
        let found: Vec<Option<String>> = table.rows.iter().map(cell).collect();
        if found.iter().any(Option::is_some) {
            columns.push(Column::figures(heading));
            for (row, cell) in rows.iter_mut().zip(found) {
                row.push(Cell::text(cell.unwrap_or_else(|| NONE.to_owned())));
            }
        }
    };
    let with_ratio = |row: &Row, metric: Metric, unit: f64| {
        let figure = row.figures.get(&metric)?;
        let median = match unit == 1.0 {
            true => format::median(metric, figure),
            false => format::significant(figure.median / unit),
        };
        let ratio = figure.ratio.as_ref().map(|ratio| format!(", {}", format::interval(ratio)));
        Some(median + &ratio.unwrap_or_default())
    };
    column("good runs", &|row| Some(row.good.to_string()));
    column("wall s, ratio", &|row| with_ratio(row, Metric::Wall, 1.0));
    column("instructions 10⁹, ratio", &|row| with_ratio(row, Metric::Instructions, 1e9));
    let counted = |row: &Row, count: fn(&Counters) -> Option<u64>, unit: f64| {
        let is_good =
            |o: &&&Observation| o.stack == row.stack && o.phase == Phase::Timed && o.outcome.is_ok();
        let good = observations.iter().filter(is_good);
        let counts: Vec<f64> = good.filter_map(|o| count(&o.counters)).map(|count| count as f64).collect();
        (!counts.is_empty()).then(|| format::significant(heaptoll_statistics::median(&counts) / unit))
    };
    column("cycles 10⁹", &|row| counted(row, |c| c.cycles, 1e9));
    column("cache misses 10⁶", &|row| counted(row, |c| c.llc_misses, 1e6));
    column("TLB misses 10⁶", &|row| counted(row, |c| c.dtlb_misses, 1e6));
    column("involuntary switches a CPU s", &|row| {
        row.involuntary_switches_per_cpu_s.map(format::significant)
    });
    Grid { columns, rows, wide: true, ..Grid::default() }
}

/// What a server's load, or a program itself, reports: figures down and managers across, for a load reports more
/// figures than there are managers. Below each are its ratios to the baseline. None without any.
pub(super) fn load(table: &ProgramTable, baseline: &str) -> Option<Grid> {
    let names: BTreeSet<&String> = table.rows.iter().flat_map(|row| row.load_figures.keys()).collect();
    let stacks: Vec<&Row> = table.rows.iter().filter(|row| !row.load_figures.is_empty()).collect();
    let medians = |name: &String| {
        let figure = |row: &&Row| row.load_figures.get(name).map_or(NONE.into(), |v| format::significant(*v));
        let figures = stacks.iter().map(|row| Cell::text(figure(row)));
        std::iter::once(Cell::text(name)).chain(figures).collect()
    };
    // A median alone would look certain.
    let ratios = |name: &String| {
        let words = |row: &Row| if row.stack == baseline { "baseline" } else { NONE };
        let ratio = |row: &&Row| Cell::ratio(row.load_ratios.get(name), words(row));
        let figures = stacks.iter().map(ratio);
        std::iter::once(Cell::text(format!("{name} ratio")).toned(Tone::Dim)).chain(figures).collect()
    };
    let has_ratio = |name: &&String| stacks.iter().any(|row| row.load_ratios.contains_key(*name));
    let rows = |name: &String| {
        let ratios = Some(name).filter(has_ratio).map(ratios);
        std::iter::once(medians(name)).chain(ratios).collect::<Vec<Vec<Cell>>>()
    };
    let headings = stacks.iter().map(|row| Column::figures(&row.stack));
    (!stacks.is_empty()).then(|| Grid {
        columns: std::iter::once(Column::text("own report (medians)")).chain(headings).collect(),
        rows: names.into_iter().flat_map(rows).collect(),
        wide: true,
        ..Grid::default()
    })
}
