//! The figures of one program: a row a stack.

use std::collections::HashMap;

use heaptoll_experiment::comparison::{Comparison, Figure, Metric, ProgramTable, Row};
use heaptoll_experiment::observation::MemoryTrack;

use crate::document::{Cell, Columns, Table, Tone};
use crate::format::{self, NONE, TOO_FEW};

/// CPU, memory and verdict, and what a narrow terminal does without. Where memory falls before the end, what is left then.
pub(super) fn table(
    comparison: &Comparison,
    program: &ProgramTable,
    tracks: &[MemoryTrack],
    notes: Vec<String>,
) -> Table {
    const LEFT: &str = "left: resident in the last tenth of the run that was sampled. If it is near the peak, the \
                        manager retains what the program has freed.";
    // Only managers that keep the statistics page report it.
    let heap = program.rows.iter().any(|row| row.heap_high_water_bytes.is_some());
    let left = left(&program.program, tracks);
    let left_kib = |row: &&Row| left.as_ref()?.get(row.stack.as_str()).copied();
    costs(comparison, program, |row, metric| ratio(comparison, row, metric))
        .when(heap, |table| {
            table.optional("heap MiB", |row| row.heap_high_water_bytes.map(format::mib_from_bytes))
        })
        .when(left.is_some(), |table| {
            table.figure("left MiB", |row| left_kib(row).map(|kib| format::mib_from_kib(kib as f64)))
        })
        .optional("faults", |row| (row.good > 0).then(|| format::count(row.minor_faults)))
        .optional("start ms", |row| row.startup_cpu_s.map(format::milliseconds))
        .text("verdict", |row| verdict(row))
        .notes(notes)
        .notes(left.as_ref().map(|_| LEFT.to_owned()))
        .wide()
}

/// Names, CPU time and memory alone. Where pairs are too few for an interval, medians give a first guess.
pub(super) fn brief(comparison: &Comparison, program: &ProgramTable) -> Table {
    let baseline = program.rows.iter().find(|row| row.stack == comparison.baseline);
    let guess = |row: &Row, metric: Metric| {
        let figures = (row.figures.get(&metric), baseline.and_then(|row| row.figures.get(&metric)));
        match figures {
            (Some(own @ Figure { ratio: None, .. }), Some(base)) if row.stack != comparison.baseline => {
                Cell::text(format!("about {:.2}", own.median / base.median)).toned(Tone::Dim)
            }
            _ => ratio(comparison, row, metric),
        }
    };
    costs(comparison, program, guess).wide()
}

/// The first columns: names, CPU time and memory, with their ratios.
fn costs<'a>(
    comparison: &Comparison,
    program: &'a ProgramTable,
    ratio: impl Fn(&Row, Metric) -> Cell,
) -> Columns<&'a Row> {
    let median = |row: &Row, metric| Some(format::median(metric, row.figures.get(&metric)?));
    Table::of(&program.rows)
        .text("manager", |row| name(comparison, row))
        .optional("CPU s", |row| median(row, Metric::Cpu))
        .figure("CPU ratio", |row| ratio(row, Metric::Cpu))
        .figure("RSS MiB", |row| median(row, Metric::PeakRss))
        .figure("memory ratio", |row| ratio(row, Metric::PeakRss))
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

fn name(comparison: &Comparison, row: &Row) -> Cell {
    Cell {
        tone: match row.stack == comparison.baseline {
            true => Tone::Strong,
            false if row.good == 0 => Tone::More,
            false => Tone::Same,
        },
        marks: row.marks.clone(),
        tag: if row.on_frontier { "frontier".into() } else { String::new() },
        ..Cell::text(&row.stack)
    }
}

fn ratio(comparison: &Comparison, row: &Row, metric: Metric) -> Cell {
    let figure = row.figures.get(&metric);
    let words = match (row.stack == comparison.baseline, figure) {
        (true, _) => "baseline",
        (_, None) => NONE,
        _ => TOO_FEW,
    };
    Cell::ratio(figure.and_then(|figure| figure.ratio.as_ref()), words)
}

fn verdict(row: &Row) -> Cell {
    let claims = |metric| row.figures.get(&metric).and_then(|f| f.ratio).is_some_and(|ratio| ratio.differs);
    let tone = match row.good {
        0 => Tone::More,
        _ if claims(Metric::Cpu) || claims(Metric::PeakRss) => Tone::Same,
        _ => Tone::Dim,
    };
    Cell::text(&row.verdict).toned(tone)
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
