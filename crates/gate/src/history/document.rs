//! A history as a document: each program's figures over its commits.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, date, shell_command};
use heaptoll_units::{MIB, plural};

use super::commit::Commit;
use super::store::HistoryRow;
use crate::metric::{Metric, Unit};
use crate::values::value;

/// Commits of a table, the latest.
const LISTED: usize = 20;
/// Characters of a commit's hash.
const HASH: usize = 10;
/// Metrics of a table.
const COLUMNS: [Metric; 6] =
    [Metric::Instructions, Metric::Allocations, Metric::Live, Metric::Exit, Metric::Cpu, Metric::Resident];

/// A commit on one kind of machine: hash, whether it is dirty, processor.
type Place<'a> = (&'a str, bool, &'a str);

/// What is known of a commit: by metric, the last figure that was measured.
struct Point<'a> {
    commit: &'a Commit,
    cpu: &'a str,
    measured_unix_s: f64,
    figures: BTreeMap<&'a str, &'a HistoryRow>,
}

/// The document of all rows of a file.
pub fn document(rows: &[HistoryRow], path: &Path) -> Document {
    let mut by_program: BTreeMap<&str, Vec<&HistoryRow>> = BTreeMap::new();
    rows.iter().for_each(|row| by_program.entry(&row.program).or_default().push(row));
    let file = path.display().to_string();
    Document {
        title: "History of heaptoll gate".into(),
        subtitle: format!("{} in {file}", plural(by_program.len(), "program")),
        sections: by_program.into_iter().map(|(program, rows)| section(program, &rows)).collect(),
        command: shell_command(&["heaptoll".into(), "report".into(), "--history".into(), file]),
        ..Document::default()
    }
}

fn section(program: &str, rows: &[&HistoryRow]) -> Section {
    let points = points(rows);
    let mut text = Vec::new();
    let without =
        rows.iter().filter(|row| row.commit.is_none() && row.side == "new").map(|row| row.measured_unix_s);
    let mut without: Vec<f64> = without.collect();
    without.dedup();
    if !without.is_empty() {
        text.push(format!("{} of an unknown commit left out.", plural(without.len(), "gate")));
    }
    let mut cpus: Vec<&str> = points.iter().map(|point| point.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() > 1 {
        text.push(format!(
            "Measured on {} models of processors: compare counts of instructions only within one model, \
             because libraries choose their routines by it.",
            cpus.len()
        ));
    }
    let mut items: Vec<Item> = table(&points, cpus.len() > 1).into_iter().collect();
    items.extend(Metric::ALL.into_iter().filter_map(|metric| chart(metric, &points, &cpus)));
    Section { title: program.to_owned(), text, items }
}

/// The commits in the order of their dates, those without one by the time of their gate.
fn points<'a>(rows: &[&'a HistoryRow]) -> Vec<Point<'a>> {
    let mut by_place: BTreeMap<Place<'a>, Point<'a>> = BTreeMap::new();
    for &row in rows {
        let Some(commit) = &row.commit else { continue };
        let point =
            by_place.entry((commit.hash.as_str(), commit.dirty, row.cpu.as_str())).or_insert_with(|| Point {
                commit,
                cpu: &row.cpu,
                measured_unix_s: row.measured_unix_s,
                figures: BTreeMap::new(),
            });
        if commit.unix_s.is_some() {
            point.commit = commit;
        }
        point.measured_unix_s = row.measured_unix_s;
        point.figures.insert(&row.metric, row);
    }
    let mut points: Vec<Point> = by_place.into_values().collect();
    let time = |point: &Point| point.commit.unix_s.map_or(point.measured_unix_s, |date| date as f64);
    points.sort_by(|a, b| time(a).total_cmp(&time(b)).then(a.measured_unix_s.total_cmp(&b.measured_unix_s)));
    points
}

fn name(commit: &Commit) -> String {
    let hash: String = commit.hash.chars().take(HASH).collect();
    if commit.dirty { format!("{hash}+") } else { hash }
}

fn day(commit: &Commit) -> String {
    commit.unix_s.map_or_else(|| NONE.to_owned(), |seconds| date(seconds as f64))
}

fn table(points: &[Point], with_cpu: bool) -> Option<Item> {
    let last = &points[points.len().saturating_sub(LISTED)..];
    let shown =
        COLUMNS.iter().filter(|metric| last.iter().any(|point| point.figures.contains_key(metric.name())));
    let shown: Vec<&Metric> = shown.collect();
    let mut columns = vec![Column::text("commit"), Column::text("date")];
    columns.extend(with_cpu.then(|| Column::text("processor")));
    columns.extend(shown.iter().map(|metric| Column::figures(metric.name())));
    let row = |point: &Point| {
        let mut cells = vec![name(point.commit), day(point.commit)];
        cells.extend(with_cpu.then(|| point.cpu.to_owned()));
        cells.extend(shown.iter().map(|metric| match point.figures.get(metric.name()) {
            Some(row) if row.verdict == "broken" && row.side == "new" => {
                format!("{} !", value(metric.unit(), Some(row.value)))
            }
            Some(row) => value(metric.unit(), Some(row.value)),
            None => NONE.to_owned(),
        }));
        cells
    };
    let rows: Vec<Vec<String>> = last.iter().map(row).collect();
    let earlier = points.len() - last.len();
    let caption = if earlier == 0 {
        String::new()
    } else {
        format!("the last {LISTED} commits; {earlier} earlier ones")
    };
    let notes = vec!["+: tracked files were changed; !: a limit was broken against its base.".into()];
    (!rows.is_empty()).then_some(Item::Table(Table { caption, columns, rows, notes }))
}

fn chart(metric: Metric, points: &[Point], cpus: &[&str]) -> Option<Item> {
    let (scale, unit) = match metric.unit() {
        Unit::Bytes => (MIB, "MiB"),
        Unit::Seconds => (1.0, "s"),
        Unit::Count => (1.0, "count"),
    };
    let series = |cpu: &&str| {
        let placed = points.iter().enumerate().filter(|(_, point)| point.cpu == *cpu);
        let rows = placed.filter_map(|(at, point)| Some((at, point, *point.figures.get(metric.name())?)));
        let rows: Vec<(usize, &Point, &HistoryRow)> = rows.collect();
        let label = |(_, point, row): &(usize, &Point, &HistoryRow)| {
            format!("{} {}: {}", name(point.commit), day(point.commit), value(metric.unit(), Some(row.value)))
        };
        let ends =
            |row: &HistoryRow| (row.low.unwrap_or(row.value) / scale, row.high.unwrap_or(row.value) / scale);
        let is_measured = rows.iter().any(|(_, _, row)| row.low.is_some());
        Series {
            name: if cpus.len() > 1 { (*cpu).to_owned() } else { metric.name().to_owned() },
            points: rows.iter().map(|(at, _, row)| ((at + 1) as f64, row.value / scale)).collect(),
            band: if is_measured { rows.iter().map(|(_, _, row)| ends(row)).collect() } else { vec![] },
            labels: rows.iter().map(label).collect(),
            ..Series::default()
        }
    };
    let series: Vec<Series> = cpus.iter().map(series).filter(|series| !series.points.is_empty()).collect();
    let is_drawn = series.iter().any(|series| series.points.len() > 1);
    is_drawn.then(|| {
        Item::Chart(Chart {
            title: metric.label().to_owned(),
            caption: "Commits from left to right by their dates.".into(),
            form: Form::Joined,
            x: Axis::even("commit"),
            y: Axis::even(unit),
            series,
        })
    })
}
