//! Tables and figures of a paper, with the published values and ours.

use heaptoll_report::document::{
    Axis, Cell, Chart, Column, Form, Item, Link, Part, Ratio, Series, Table, Tone,
};
use heaptoll_report::format::{self, and_list};

use super::brackets::{plainly, ratio};
use super::folded;
use super::paper::Paper;
use crate::definition;
use crate::exhibit::{Body, Ours, Pair, Shown};

/// A value and its interval as text.
type Figure = fn(f64, Option<(f64, f64)>) -> (String, String);
/// The name of a row and its cells.
type Row = (String, Vec<Cell>);

/// All of it.
pub fn exhibit(shown: &Shown, paper: &Paper) -> Item {
    let defined = paper.study.exhibits.iter().find(|exhibit| exhibit.id == shown.id);
    let figure: Figure = if defined.is_some_and(|exhibit| exhibit.as_ratio) { ratio } else { plainly };
    let mut text = shown.text.clone();
    let mut items: Vec<Item> = chart(shown).map(Item::Chart).into_iter().collect();
    let (columns, rows) = values(&shown.body, |pair| cell(pair, figure));
    if !rows.is_empty() {
        let baseline = defined.map_or_else(String::new, baseline);
        items.push(Item::Table(table(&columns, rows, &shown.notes, &baseline)));
    } else {
        text.extend(shown.notes.iter().cloned());
        if items.is_empty() {
            text.push("Nothing was measured for this.".into());
        }
    }
    if !shown.commands.is_empty() {
        items.push(folded("Repeat it", vec![], vec![Item::Commands(shown.commands.clone())]));
    }
    let bears = paper.verdicts.iter().filter(|verdict| verdict.exhibits.contains(&shown.id)).map(|verdict| {
        let name = if verdict.place.is_empty() { &verdict.claim } else { &verdict.place };
        Link { id: paper.anchor(&verdict.claim), text: format!("{name} ({})", verdict.answer.label()) }
    });
    Item::Part(Part {
        id: paper.anchor(&shown.id),
        title: shown.title.clone(),
        text,
        items,
        see: bears.collect(),
        ..Part::default()
    })
}

/// The baseline of ratios.
fn baseline(exhibit: &definition::Exhibit) -> String {
    match (&exhibit.relative_to, &exhibit.relative_variant) {
        (Some(manager), Some(variant)) => format!("{manager} on :{variant}"),
        (Some(manager), None) => manager.clone(),
        (None, Some(variant)) => format!(":{variant}"),
        (None, None) => String::new(),
    }
}

/// Headings and rows: of bars the places, of lines the places on the axis; a column a series.
fn values(body: &Body, cell: impl Fn(&Pair) -> Cell) -> (Vec<String>, Vec<Row>) {
    match body {
        Body::Table { columns, rows } => {
            let row = |(name, pairs): &(String, Vec<Pair>)| (name.clone(), pairs.iter().map(&cell).collect());
            (columns.clone(), rows.iter().map(row).collect())
        }
        Body::Bars { places, series, .. } => {
            let row = |(at, place): (usize, &String)| {
                let cells = series.iter().map(|(_, pairs)| pairs.get(at).map_or_else(Cell::default, &cell));
                (place.clone(), cells.collect())
            };
            (headings("", series), places.iter().enumerate().map(row).collect())
        }
        Body::Lines { x_title, series, .. } => {
            let mut places: Vec<f64> =
                series.iter().flat_map(|(_, points)| points).map(|(x, _)| *x).collect();
            places.sort_by(f64::total_cmp);
            places.dedup();
            let row = |x: &f64| {
                let at = |(_, points): &(String, Vec<(f64, Pair)>)| {
                    let here = points.iter().find(|(place, _)| place == x);
                    here.map_or_else(Cell::default, |(_, pair)| cell(pair))
                };
                (place(*x), series.iter().map(at).collect())
            };
            (headings(x_title, series), places.iter().map(row).collect())
        }
    }
}

fn headings<T>(corner: &str, series: &[(String, T)]) -> Vec<String> {
    std::iter::once(corner.to_owned()).chain(series.iter().map(|(name, _)| name.clone())).collect()
}

/// The values as a table. Rows without any value are named in a note.
fn table(columns: &[String], rows: Vec<Row>, notes: &[String], baseline: &str) -> Table {
    let mut left_out: Vec<(String, Vec<String>)> = Vec::new();
    let mut shown = Vec::new();
    for (name, cells) in rows {
        match wholly_missing(&cells) {
            Some(why) => match left_out.iter_mut().find(|(known, _)| known == why) {
                Some((_, names)) => names.push(name),
                None => left_out.push((why.to_owned(), vec![name])),
            },
            None => shown.push((name, cells)),
        }
    }
    let has_ratio = shown.iter().flat_map(|(_, cells)| cells).any(|cell| cell.ratio.is_some());
    let left_out = left_out.iter().map(|(why, names)| format!("{}: {why}.", and_list(names)));
    let mut titles = columns.iter();
    Table::of(shown)
        .text(titles.next().map_or("", String::as_str), |(name, _)| Cell::text(name))
        .each(
            titles.enumerate(),
            |(_, title)| Column::figures(title),
            |(_, cells), (at, _)| cells.get(*at).cloned().unwrap_or_default(),
        )
        .notes(left_out.chain(notes.iter().cloned()))
        .parts(if has_ratio { baseline } else { "" })
}

/// Why a row has no value at all, where one reason is enough.
fn wholly_missing(cells: &[Cell]) -> Option<&str> {
    let why = &cells.first()?.missing;
    let none = |cell: &Cell| cell.text.is_empty() && cell.published.is_empty() && cell.missing == *why;
    (!why.is_empty() && cells.iter().all(none)).then_some(why)
}

/// Places are often sizes: whole numbers.
fn place(x: f64) -> String {
    if x.fract() == 0.0 { format::count(x) } else { format::significant(x) }
}

fn cell(pair: &Pair, figure: Figure) -> Cell {
    let published = pair.published.join("–");
    let Some(ours) = &pair.ours else {
        return Cell { published, missing: pair.missing.clone().unwrap_or_default(), ..Cell::default() };
    };
    let (text, range) = figure(ours.value, ours.interval);
    Cell { range, ratio: against(ours), published, ..Cell::text(text) }
}

fn against(ours: &Ours) -> Option<Ratio> {
    let (value, ends) = ours.ratio?;
    let (text, range) = ratio(value, ends);
    // Counts need no interval to differ.
    let certain = ends.or(ours.exact.then_some((value, value)));
    let tone = match certain {
        Some((_, high)) if high < 1.0 => Tone::Less,
        Some((low, _)) if low > 1.0 => Tone::More,
        _ => Tone::Same,
    };
    Some(Ratio { text, range, tone })
}

fn chart(shown: &Shown) -> Option<Chart> {
    let (form, x, y, series) = match &shown.body {
        Body::Table { .. } => return None,
        Body::Bars { y_title, log_y, places, series } => {
            let x = Axis { names: places.clone(), ..Axis::default() };
            let y = Axis { title: y_title.clone(), log: *log_y, names: vec![] };
            let series = series.iter().map(|(name, values)| {
                curve(name, values.iter().enumerate().map(|(place, value)| (place as f64, value)))
            });
            (Form::Bars, x, y, series.collect())
        }
        Body::Lines { x_title, y_title, log_x, log_y, series } => {
            let axis = |title: &String, log: bool| Axis { title: title.clone(), log, names: vec![] };
            let series =
                series.iter().map(|(name, points)| curve(name, points.iter().map(|(x, value)| (*x, value))));
            (Form::Lines, axis(x_title, *log_x), axis(y_title, *log_y), series.collect())
        }
    };
    Some(Chart { title: shown.title.clone(), caption: String::new(), form, x, y, series })
}

fn curve<'a>(name: &str, values: impl Iterator<Item = (f64, &'a Pair)>) -> Series {
    let mut series = Series { name: name.to_owned(), ..Series::default() };
    for (x, value) in values {
        if let Some(ours) = &value.ours {
            series.points.push((x, ours.value));
            series.band.push(ours.interval.unwrap_or((ours.value, ours.value)));
        }
        series.published.extend(value.published.iter().filter_map(|text| Some((x, number(text)?))));
    }
    // A band of no width is none.
    if series.points.iter().zip(&series.band).all(|((_, value), ends)| *ends == (*value, *value)) {
        series.band.clear();
    }
    series
}

/// A published value that is a number.
fn number(text: &str) -> Option<f64> {
    text.trim()
        .trim_end_matches('%')
        .trim_end()
        .replace(',', "")
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(value: f64, interval: Option<(f64, f64)>) -> Pair {
        Pair { ours: Some(Ours { value, interval, ratio: None, exact: false }), ..Pair::default() }
    }

    #[test]
    fn bars_have_a_chart_and_a_table_with_the_published_values() {
        let value = Pair { published: vec!["1,024".into()], ..ours(2.0, Some((1.5, 2.5))) };
        let none = Pair { missing: Some("not installed".into()), ..Pair::default() };
        let body = Body::Bars {
            y_title: "CPU, s".into(),
            log_y: false,
            places: vec!["cfrac".into(), "gawk".into()],
            series: vec![("kingsley".into(), vec![value, none])],
        };
        let (columns, rows) = values(&body, |pair| cell(pair, plainly));
        assert_eq!(columns, ["", "kingsley"]);
        assert_eq!((rows[0].1[0].published.as_str(), rows[1].0.as_str()), ("1,024", "gawk"));
        assert_eq!(rows[1].1[0].missing, "not installed");
        let shown = Shown {
            id: "figure1".into(),
            title: "Figure 1".into(),
            text: vec![],
            commands: vec![],
            body,
            notes: vec![],
        };
        let series = &chart(&shown).expect("a chart").series[0];
        assert_eq!((&series.points[..], &series.band[..]), (&[(0.0, 2.0)][..], &[(1.5, 2.5)][..]));
        assert_eq!(series.published, [(0.0, 1024.0)]);
    }

    #[test]
    fn lines_meet_in_rows_by_their_place() {
        let series = vec![
            ("a".to_owned(), vec![(2.0, ours(5.0, None)), (1.0, ours(4.0, None))]),
            ("b".to_owned(), vec![(2.0, ours(6.0, None))]),
        ];
        assert!(curve("a", series[0].1.iter().map(|(x, value)| (*x, value))).band.is_empty());
        let (x_title, y_title) = ("KiB".to_owned(), String::new());
        let body = Body::Lines { x_title, y_title, log_x: false, log_y: false, series };
        let (columns, rows) = values(&body, |pair| cell(pair, plainly));
        assert_eq!((columns[0].as_str(), rows[0].0.as_str(), rows[1].0.as_str()), ("KiB", "1", "2"));
        assert_eq!((rows[0].1[1].text.as_str(), rows[1].1[1].text.as_str()), ("", "6.000"));
        assert_eq!(place(0.25), "0.250");
    }

    #[test]
    fn rows_without_any_value_are_named_in_a_note() {
        let missing = |why: &str| Cell { missing: why.into(), ..Cell::default() };
        let published = Cell { published: "2".into(), ..missing("left out") };
        let rows = [
            ("make", [missing("left out"), missing("left out")]),
            ("lua", [missing("left out"), missing("left out")]),
            ("perl", [published, missing("left out")]),
            ("gawk", [missing("left out"), missing("crashed")]),
        ];
        let rows = rows.map(|(name, cells)| (name.to_owned(), cells.to_vec()));
        let shown = table(&["", "", ""].map(String::from), rows.into(), &[], "");
        assert_eq!(shown.notes, ["make and lua: left out."]);
        let names: Vec<&str> = shown.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(names, ["perl", "gawk"]);
    }

    #[test]
    fn a_ratio_is_coloured_only_where_its_interval_excludes_one() {
        let of = |ratio, exact| against(&Ours { value: 1.0, interval: None, ratio: Some(ratio), exact });
        let tone = |ratio, exact| of(ratio, exact).expect("a ratio").tone;
        assert_eq!(tone((1.2, Some((1.1, 1.3))), false), Tone::More);
        assert_eq!(tone((0.8, Some((0.7, 0.9))), false), Tone::Less);
        assert_eq!(tone((1.2, Some((0.9, 1.5))), false), Tone::Same);
        assert_eq!((tone((1.2, None), false), tone((1.2, None), true)), (Tone::Same, Tone::More));
    }

    #[test]
    fn published_numbers_are_read_and_words_are_not() {
        assert_eq!(["1,024", "34 %", "~3", "yes"].map(number), [Some(1024.0), Some(34.0), None, None]);
    }
}
