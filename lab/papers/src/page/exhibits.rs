//! Tables and figures of a paper, with the published values and ours.

use crate::definition::{self, Study};
use crate::exhibit::{Body, Ours, Pair, Shown};
use heaptoll_report::book::{self, Exhibit, Pairs};
use heaptoll_report::document::{self, Axis, Chart, Ratio, Series, Tone};
use heaptoll_report::format;

use super::brackets::{plainly, ratio};

/// A value and its interval as text.
type Figure = fn(f64, Option<(f64, f64)>) -> (String, String);

/// An exhibit as the page shows it.
pub fn exhibit(shown: &Shown, study: &Study) -> Exhibit {
    let defined = study.exhibits.iter().find(|exhibit| exhibit.id == shown.id);
    let figure: Figure = if defined.is_some_and(|exhibit| exhibit.as_ratio) { ratio } else { plainly };
    let pair = |value: &Pair| pair(value, figure);
    let mut table = match &shown.body {
        Body::Table { columns, rows } => Pairs {
            columns: columns.clone(),
            rows: rows.iter().map(|(name, cells)| (name.clone(), cells.iter().map(pair).collect())).collect(),
            ..Pairs::default()
        },
        Body::Bars { places, series, .. } => by_place(places, series, pair),
        Body::Lines { x_title, series, .. } => by_x(x_title, series, pair),
    };
    table.baseline = defined.map_or_else(String::new, baseline);
    Exhibit {
        id: shown.id.clone(),
        title: shown.title.clone(),
        text: shown.text.clone(),
        chart: chart(shown),
        table,
        notes: shown.notes.clone(),
        commands: shown.commands.clone(),
    }
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

/// Rows are the places, columns the series.
fn by_place(places: &[String], series: &[(String, Vec<Pair>)], pair: impl Fn(&Pair) -> book::Pair) -> Pairs {
    let row = |(at, place): (usize, &String)| {
        let cells = series.iter().map(|(_, values)| values.get(at).map_or_else(Default::default, &pair));
        (place.clone(), cells.collect())
    };
    Pairs {
        columns: columns("", series.iter().map(|(name, _)| name)),
        rows: places.iter().enumerate().map(row).collect(),
        ..Pairs::default()
    }
}

/// Rows are the places on the axis, columns the series.
fn by_x(x_title: &str, series: &[(String, Vec<(f64, Pair)>)], pair: impl Fn(&Pair) -> book::Pair) -> Pairs {
    let mut places: Vec<f64> = series.iter().flat_map(|(_, points)| points).map(|(x, _)| *x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let row = |x: &f64| {
        let at = |points: &[(f64, Pair)]| {
            points.iter().find(|(place, _)| place == x).map(|(_, value)| pair(value))
        };
        (place(*x), series.iter().map(|(_, points)| at(points).unwrap_or_default()).collect())
    };
    Pairs {
        columns: columns(x_title, series.iter().map(|(name, _)| name)),
        rows: places.iter().map(row).collect(),
        ..Pairs::default()
    }
}

fn columns<'a>(corner: &str, names: impl Iterator<Item = &'a String>) -> Vec<String> {
    std::iter::once(corner.to_owned()).chain(names.cloned()).collect()
}

/// Places are often sizes: whole numbers.
fn place(x: f64) -> String {
    if x.fract() == 0.0 { format::count(x) } else { format::significant(x) }
}

fn pair(value: &Pair, figure: Figure) -> book::Pair {
    let (ours, range) =
        value.ours.as_ref().map_or_else(Default::default, |ours| figure(ours.value, ours.interval));
    book::Pair {
        ours,
        range,
        ratio: value.ours.as_ref().and_then(against),
        paper: value.published.join("–"),
        missing: value.missing.clone().unwrap_or_default(),
    }
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
            (document::Form::Bars, x, y, series.collect())
        }
        Body::Lines { x_title, y_title, log_x, log_y, series } => {
            let axis = |title: &String, log: bool| Axis { title: title.clone(), log, names: vec![] };
            let series =
                series.iter().map(|(name, points)| curve(name, points.iter().map(|(x, value)| (*x, value))));
            (document::Form::Lines, axis(x_title, *log_x), axis(y_title, *log_y), series.collect())
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
        let shown = Shown {
            id: "figure1".into(),
            title: "Figure 1".into(),
            text: vec![],
            commands: vec![],
            body,
            notes: vec![],
        };
        let study = &crate::page::testing::results().papers[0].study;
        let exhibit = exhibit(&shown, study);
        let series = &exhibit.chart.as_ref().expect("a chart").series[0];
        assert_eq!((&series.points[..], &series.band[..]), (&[(0.0, 2.0)][..], &[(1.5, 2.5)][..]));
        assert_eq!(series.published, [(0.0, 1024.0)]);
        let (row, cells) = &exhibit.table.rows[1];
        assert_eq!((row.as_str(), cells[0].missing.as_str()), ("gawk", "not installed"));
        assert_eq!(exhibit.table.rows[0].1[0].paper, "1,024");
        assert_eq!(exhibit.table.columns, ["", "kingsley"]);
    }

    #[test]
    fn lines_meet_in_rows_by_their_place() {
        let series = [
            ("a".to_owned(), vec![(2.0, ours(5.0, None)), (1.0, ours(4.0, None))]),
            ("b".to_owned(), vec![(2.0, ours(6.0, None))]),
        ];
        let table = by_x("KiB", &series, |value| pair(value, plainly));
        let names: Vec<&str> = table.rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["1", "2"]);
        assert_eq!(place(0.25), "0.250");
        assert_eq!((table.rows[0].1[1].ours.as_str(), table.rows[1].1[1].ours.as_str()), ("", "6.000"));
        assert!(curve("a", series[0].1.iter().map(|(x, value)| (*x, value))).band.is_empty());
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
