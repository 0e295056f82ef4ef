//! CPU of each plan over the size of the heap, and charts of it, of copies and of pauses.

use heaptoll_report::document::{Axis, Chart, Column, Form, Section, Series, Table};
use heaptoll_report::format::seconds;
use heaptoll_units::{MIB, mib};

use super::figures::{Ending, GraphReplayFigures, Row, Spent};
use super::sections::size_text;

/// Charts over heaps; nothing below two heaps.
pub fn over_heaps(found: &GraphReplayFigures) -> Option<Section> {
    let chart = |title: &str, y: &str, figure: fn(&Spent) -> f64| {
        let series = series(found, figure);
        (!series.is_empty()).then(|| Chart {
            title: title.into(),
            caption: "By size of the heap; a plan begins at the first heap that fits the program.".into(),
            form: Form::Joined,
            x: Axis::even("heap, MiB"),
            y: Axis::spread(y, series.iter().flat_map(|one| one.points.iter().map(|point| point.1))),
            series,
        })
    };
    let charts = [
        chart("CPU", "CPU s", |spent| spent.cpu_s),
        chart("Collector's CPU", "CPU s", |spent| spent.collector_cpu_s),
        chart("Copied", "MiB", |spent| spent.copied_bytes / MIB),
        chart("Longest pause", "ms", |spent| spent.longest_pause_ns / 1e6),
    ];
    let is_measured = found.heaps.iter().flat_map(|heap| &heap.rows).any(|row| row.spent.is_some());
    let section = Section::new("Over the size of the heap").with(cpu(found));
    (found.heaps.len() > 1 && is_measured).then(|| section.with_all(charts.into_iter().flatten()))
}

/// CPU of each plan in each heap.
fn cpu(found: &GraphReplayFigures) -> Table {
    let cell = |row: &Row| match (row.spent, row.ending) {
        (Some(spent), _) => Some(seconds(spent.cpu_s)),
        (None, Ending::DoesNotFit { .. }) => Some("does not fit".into()),
        _ => None,
    };
    Table::of(&found.plans)
        .caption("CPU s")
        .text("plan", |plan| plan.plan.clone())
        .each(
            &found.heaps,
            |heap| Column::figures(&size_text(heap.size)),
            |plan, heap| heap.rows.iter().find(|row| row.plan == plan.plan).and_then(cell),
        )
        .table()
}

fn series(found: &GraphReplayFigures, figure: fn(&Spent) -> f64) -> Vec<Series> {
    let of = |plan: &str| {
        let rows = found.heaps.iter().flat_map(|heap| &heap.rows).filter(|row| row.plan == plan);
        let point = |row: &Row| Some((mib(row.heap_bytes?), figure(row.spent.as_ref()?)));
        let mut points: Vec<(f64, f64)> = rows.filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    let all = found.plans.iter().map(|row| (row, of(&row.plan))).filter(|(_, points)| !points.is_empty());
    all.map(|(row, points)| Series::of(row.plan.clone(), points)).collect()
}
