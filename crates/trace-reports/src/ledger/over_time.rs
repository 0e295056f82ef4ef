//! Memory over the run: a table of some snapshots and a chart of all.

use heaptoll_ledger::{Ledger, Snapshot};
use heaptoll_report::document::{Axis, Chart, Column, Form, Series, Table};
use heaptoll_report::format::{plural, seconds};
use heaptoll_units::{MIB, kib};

use super::groups::shown;

/// Rows of the table over time, at most.
const ROWS: usize = 12;

/// Numbers of at most [`ROWS`] of `many`, evenly, one of them `also`, and the last.
pub fn spread(many: usize, also: Option<usize>) -> Vec<usize> {
    let rows = ROWS.min(many);
    let mut all: Vec<usize> =
        (0..rows).map(|row| if rows > 1 { row * (many - 1) / (rows - 1) } else { 0 }).collect();
    all.extend(also);
    all.sort_unstable();
    all.dedup();
    all
}

/// The table, with the snapshot at the peak.
pub fn over_time(ledger: &Ledger, peak: usize) -> Table {
    let snapshots = &ledger.snapshots;
    let shown_at = spread(snapshots.len(), Some(peak));
    let note = format!("Resident KiB; {} of {}.", shown_at.len(), plural(snapshots.len(), "snapshot"));
    Table::of(shown_at.into_iter().map(|at| &snapshots[at]))
        .figure("Time s", |snapshot| seconds(snapshot.time_ns as f64 / 1e9))
        .figure("RSS KiB", |snapshot| kib(snapshot.rss_bytes))
        .each(
            shown(snapshots),
            |group| Column::figures(group.name),
            |snapshot, group| kib(group.amount(snapshot).resident),
        )
        .note(note)
        .table()
}

/// The chart.
pub fn chart(snapshots: &[Snapshot]) -> Chart {
    let series = shown(snapshots).map(|group| Series {
        name: group.name.into(),
        points: snapshots
            .iter()
            .map(|snapshot| (snapshot.time_ns as f64 / 1e9, group.amount(snapshot).resident as f64 / MIB))
            .collect(),
        ..Series::default()
    });
    Chart {
        title: "Resident memory over time".into(),
        caption: "The areas on top of each other are the resident set.".into(),
        form: Form::Stacked,
        x: Axis::even("time s"),
        y: Axis::even("resident MiB"),
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_over_time_hold_the_peak_and_the_ends() {
        assert_eq!(spread(3, Some(1)), [0, 1, 2]);
        assert_eq!(spread(1, None), [0]);
        let many = spread(1000, Some(501));
        assert_eq!((many.len(), many[0], many[12]), (13, 0, 999));
        assert!(many.contains(&501));
    }
}
