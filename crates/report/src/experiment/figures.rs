//! The figures of one program: a row a stack.

use std::collections::HashMap;

use heaptoll_experiment::comparison::{Comparison, Figure, Metric, ProgramTable, Row};
use heaptoll_experiment::observation::MemoryTrack;

use crate::document::{Cell, Column, Grid, Tone};
use crate::format::{self, NONE, TOO_FEW};

/// CPU, memory and verdict, and what a narrow terminal does without. Where memory falls before the end, what is left then.
pub(super) fn grid(
    comparison: &Comparison,
    table: &ProgramTable,
    tracks: &[MemoryTrack],
    mut notes: Vec<String>,
) -> Grid {
    let mut columns = vec![
        Column::text("manager"),
        Column::optional("CPU s"),
        Column::figures("CPU ratio"),
        Column::figures("RSS MiB"),
        Column::figures("memory ratio"),
    ];
    // Only managers that keep the statistics page report it.
    let heap = table.rows.iter().any(|row| row.heap_high_water_bytes.is_some());
    if heap {
        columns.push(Column::optional("heap MiB"));
    }
    let left = left(&table.program, tracks);
    if left.is_some() {
        columns.push(Column::figures("left MiB"));
        notes.push(
            "left: resident in the last tenth of the run that was sampled. If it is near the peak, the \
             manager retains what the program has freed."
                .to_owned(),
        );
    }
    columns.extend([Column::optional("faults"), Column::optional("start ms"), Column::text("verdict")]);
    let rows = table.rows.iter().map(|row| cells(comparison, row, heap, left.as_ref())).collect();
    Grid { columns, rows, wide: true, notes, ..Grid::default() }
}

/// Names, CPU time and memory alone: the first columns. Where pairs are too few for an interval, medians give a first guess.
pub(super) fn brief(comparison: &Comparison, table: &ProgramTable) -> Grid {
    const BRIEF: usize = 5;
    let mut grid = grid(comparison, table, &[], vec![]);
    grid.columns.truncate(BRIEF);
    let baseline = table.rows.iter().find(|row| row.stack == comparison.baseline);
    for (cells, row) in grid.rows.iter_mut().zip(&table.rows) {
        cells.truncate(BRIEF);
        for (at, metric) in [(2, Metric::Cpu), (4, Metric::PeakRss)] {
            let figures = (row.figures.get(&metric), baseline.and_then(|row| row.figures.get(&metric)));
            if let (Some(own @ Figure { ratio: None, .. }), Some(base)) = figures
                && row.stack != comparison.baseline
            {
                cells[at] = Cell::text(format!("about {:.2}", own.median / base.median)).toned(Tone::Dim);
            }
        }
    }
    grid
}

/// By stack: KiB that are left when a program ends. None where no stack has much less then than at its peak.
fn left<'a>(program: &str, tracks: &'a [MemoryTrack]) -> Option<HashMap<&'a str, u64>> {
    let of_program = tracks.iter().filter(|track| track.program == program);
    let ends: Vec<(&MemoryTrack, u64)> =
        of_program.filter_map(|track| Some((track, last_tenth_kib(track)?))).collect();
    let falls = |(track, left): &(&MemoryTrack, u64)| {
        track
            .samples
            .iter()
            .any(|(_, kib)| *kib > FALLS_FROM_KIB && left.saturating_mul(4) < kib.saturating_mul(3))
    };
    let any_falls = ends.iter().any(falls);
    any_falls.then(|| ends.into_iter().map(|(track, left)| (track.stack.as_str(), left)).collect())
}

/// A peak below this shows nothing when it falls.
const FALLS_FROM_KIB: u64 = 8 << 10;
/// Fewest samples of a tenth of the run.
const FEWEST: usize = 3;

/// The median of the last tenth of the time: the very last samples may be of a process that ends.
fn last_tenth_kib(track: &MemoryTrack) -> Option<u64> {
    let from = track.samples.last()?.0 * 0.9;
    let mut last: Vec<u64> =
        track.samples.iter().filter(|(at, _)| *at >= from).map(|(_, kib)| *kib).collect();
    last.sort_unstable();
    (last.len() >= FEWEST).then(|| last[last.len() / 2])
}

fn cells(comparison: &Comparison, row: &Row, heap: bool, left: Option<&HashMap<&str, u64>>) -> Vec<Cell> {
    let is_baseline = row.stack == comparison.baseline;
    let mut cells = vec![Cell {
        tone: match is_baseline {
            true => Tone::Strong,
            false if row.good == 0 => Tone::More,
            false => Tone::Same,
        },
        marks: row.marks.clone(),
        tag: if row.on_frontier { "frontier".into() } else { String::new() },
        ..Cell::text(&row.stack)
    }];
    for metric in [Metric::Cpu, Metric::PeakRss] {
        let figure = row.figures.get(&metric);
        let words = match (is_baseline, figure) {
            (true, _) => "baseline",
            (_, None) => NONE,
            _ => TOO_FEW,
        };
        cells.push(Cell::text(figure.map_or(NONE.into(), |figure| format::median(metric, figure))));
        cells.push(Cell::ratio(figure.and_then(|figure| figure.ratio.as_ref()), words));
    }
    if heap {
        cells.push(Cell::text(row.heap_high_water_bytes.map_or(NONE.into(), format::mib_from_bytes)));
    }
    if let Some(left) = left {
        let kib = left.get(row.stack.as_str());
        cells.push(Cell::text(kib.map_or(NONE.into(), |kib| format::mib_from_kib(*kib as f64))));
    }
    cells.push(Cell::text(if row.good == 0 { NONE.to_owned() } else { format::count(row.minor_faults) }));
    cells.push(Cell::text(row.startup_cpu_s.map_or(NONE.into(), format::milliseconds)));
    let claims = |metric| row.figures.get(&metric).and_then(|f| f.ratio).is_some_and(|ratio| ratio.differs);
    let tone = match row.good {
        0 => Tone::More,
        _ if claims(Metric::Cpu) || claims(Metric::PeakRss) => Tone::Same,
        _ => Tone::Dim,
    };
    cells.push(Cell::text(&row.verdict).toned(tone));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, a burst that one manager kept and another gave back showed in the page's curve alone.
    #[test]
    fn what_is_left_at_the_end_is_shown_where_memory_falls() {
        let track = |stack: &str, kib: &dyn Fn(u32) -> u64| MemoryTrack {
            program: "p".into(),
            stack: stack.into(),
            samples: (0..100).map(|at| (f64::from(at) / 10.0, kib(at))).collect(),
            repetition: 1,
            vm_hwm_kib: 0,
            anonymous_peak_kib: 0,
        };
        let keeps = track("keeps", &|_| 100_000);
        // The last sample is of a process that ends.
        let gives = track("gives", &|at| {
            if at == 99 {
                0
            } else if at < 50 {
                100_000
            } else {
                2000
            }
        });
        let small = track("small", &|at| if at < 50 { 7000 } else { 1000 });
        let both = [keeps.clone(), gives, MemoryTrack { program: "other".into(), ..small.clone() }];
        let shown = left("p", &both).expect("one falls");
        assert_eq!((shown.get("keeps"), shown.get("gives"), shown.len()), (Some(&100_000), Some(&2000), 2));
        assert_eq!(left("p", &[keeps, small]), None);
    }
}
