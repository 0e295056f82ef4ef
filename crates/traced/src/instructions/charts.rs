//! The charts of `heaptoll exact instructions`.

use heaptoll_instruction_counts::{BySize, ClassFigures, Figures};
use heaptoll_report::document::{Axis, Chart, Form, Item, Series};

use super::figures::Row;
use super::sections::figures;

/// A size class needs this many calls to be in a curve: the first few of a class do work that is done once.
const FEWEST_CALLS: u64 = 20;

/// A chart of a call over sizes: title, caption, classes, and a class's value.
type Curves = (&'static str, &'static str, fn(&BySize) -> &Vec<ClassFigures>, fn(&ClassFigures) -> f64);

const PER_CALL: [Curves; 4] = [
    (
        "A call that makes a block",
        "Instructions on average, collections included.",
        |sizes| &sizes.allocate,
        |one| one.per_call.mean,
    ),
    (
        "The most expensive in a hundred",
        "99 of 100 calls that make a block take no more.",
        |sizes| &sizes.allocate,
        |one| one.per_call.p99 as f64,
    ),
    (
        "A call that frees a block",
        "Instructions on average, by the requested size of the block.",
        |sizes| &sizes.free,
        |one| one.per_call.mean,
    ),
    (
        "A call that resizes a block",
        "Instructions on average, copying included, by the new size.",
        |sizes| &sizes.resize,
        |one| one.per_call.mean,
    ),
];

fn curves(rows: &[&Row], (title, caption, classes, value): &Curves) -> Option<Item> {
    let series: Vec<Series> = figures(rows)
        .into_iter()
        .map(|(row, figures)| Series {
            name: row.manager.clone(),
            points: classes(&figures.by_size)
                .iter()
                .filter(|one| one.calls >= FEWEST_CALLS)
                .filter_map(|one| Some((one.class.up_to()? as f64, value(one))))
                .filter(|(size, _)| *size > 0.0)
                .collect(),
            ..Series::default()
        })
        .collect();
    // A curve needs two points.
    series.iter().any(|one| one.points.len() > 1).then(|| {
        Item::Chart(Chart {
            title: (*title).to_owned(),
            caption: format!("{caption} Sizes with fewer than {FEWEST_CALLS} calls are left out."),
            form: Form::Lines,
            x: Axis::log("requested size, bytes"),
            y: Axis::log("instructions"),
            series,
        })
    })
}

/// Instructions of a call over sizes.
pub fn per_call(rows: &[&Row]) -> Vec<Item> {
    PER_CALL.iter().filter_map(|shape| curves(rows, shape)).collect()
}

/// Bars of shares.
pub fn shares(rows: &[&Row]) -> impl Iterator<Item = Item> {
    let all = figures(rows);
    let names: Vec<String> = all.iter().map(|(row, _)| row.manager.clone()).collect();
    let series = |name: &str, value: fn(&Figures) -> Option<f64>| Series {
        name: name.to_owned(),
        points: all
            .iter()
            .enumerate()
            .map(|(at, (_, figures))| (at as f64, value(figures).unwrap_or_default()))
            .collect(),
        ..Series::default()
    };
    let mut parts = vec![
        series("malloc", |figures| figures.tables.percent_in_malloc),
        series("free and realloc", |figures| figures.tables.percent_in_free),
    ];
    if all.iter().any(|(_, figures)| figures.amounts.owners.collector.instructions > 0) {
        parts.push(series("collector", |figures| figures.tables.percent_in_collector));
    }
    let bars = |title: &str, caption: &str, unit: &str, series: Vec<Series>| {
        Item::Chart(Chart {
            title: title.to_owned(),
            caption: caption.to_owned(),
            form: Form::Bars,
            x: Axis { title: String::new(), log: false, names: names.clone() },
            y: Axis::even(unit),
            series,
        })
    };
    [
        bars(
            "Shares of all instructions",
            "A collection counts in the bar of the call that started it, and in the collector's.",
            "% of all instructions",
            parts,
        ),
        bars(
            "Instructions of an object",
            "All allocation instructions divided by objects made.",
            "instructions",
            vec![series("an object", |figures| figures.tables.instructions_per_object)],
        ),
    ]
    .into_iter()
}
