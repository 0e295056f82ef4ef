//! CPU of each plan over the size of the heap, and charts of it, of copies and of pauses.

use heaptoll_report::document::{Axis, Chart, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, seconds};
use heaptoll_units::{MIB, mib};

use super::figures::{Ending, Figures, Heap, Row, Spent};
use super::sections::size_text;
use heaptoll_command::tables::table;

/// Charts over heaps; nothing below two heaps.
pub fn over_heaps(found: &Figures) -> Option<Section> {
    let chart = |title: &str, y: &str, figure: fn(&Spent) -> f64| {
        let series = series(found, figure);
        (!series.is_empty()).then(|| {
            Item::Chart(Chart {
                title: title.into(),
                caption: "By size of the heap; a plan begins at the first heap that fits the program.".into(),
                form: Form::Joined,
                x: Axis::even("heap, MiB"),
                y: Axis::spread(y, series.iter().flat_map(|one| one.points.iter().map(|point| point.1))),
                series,
            })
        })
    };
    let items: Vec<Item> = [
        Some(Item::Table(cpu(found))),
        chart("CPU", "CPU s", |spent| spent.cpu_s),
        chart("Collector's CPU", "CPU s", |spent| spent.collector_cpu_s),
        chart("Copied", "MiB", |spent| spent.copied_bytes / MIB),
        chart("Longest pause", "ms", |spent| spent.longest_pause_ns / 1e6),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_measured = found.heaps.iter().flat_map(|heap| &heap.rows).any(|row| row.spent.is_some());
    (found.heaps.len() > 1 && is_measured).then(|| Section {
        title: "Over the size of the heap".into(),
        text: vec![],
        items,
    })
}

/// CPU of each plan in each heap.
fn cpu(found: &Figures) -> Table {
    let cell = |row: &Row| match (row.spent, row.ending) {
        (Some(spent), _) => seconds(spent.cpu_s),
        (None, Ending::DoesNotFit { .. }) => "does not fit".into(),
        _ => NONE.into(),
    };
    let row = |plan: &str| {
        let in_heap = |heap: &Heap| heap.rows.iter().find(|row| row.plan == plan).map_or(NONE.into(), cell);
        std::iter::once(plan.to_owned()).chain(found.heaps.iter().map(in_heap)).collect()
    };
    let sizes: Vec<String> = found.heaps.iter().map(|heap| size_text(heap.size)).collect();
    let titles: Vec<&str> = std::iter::once("plan").chain(sizes.iter().map(String::as_str)).collect();
    table("CPU s", &titles, found.plans.iter().map(|plan| row(&plan.plan)).collect())
}

fn series(found: &Figures, figure: fn(&Spent) -> f64) -> Vec<Series> {
    let of = |plan: &str| {
        let rows = found.heaps.iter().flat_map(|heap| &heap.rows).filter(|row| row.plan == plan);
        let point = |row: &Row| Some((mib(row.heap_bytes?), figure(row.spent.as_ref()?)));
        let mut points: Vec<(f64, f64)> = rows.filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    };
    let all = found.plans.iter().map(|row| (row, of(&row.plan))).filter(|(_, points)| !points.is_empty());
    all.map(|(row, points)| Series { name: row.plan.clone(), points, ..Series::default() }).collect()
}
