//! What was found over the places of an axis: charts of ratios, and a sentence.

use heaptoll_experiment::comparison::Ratios;
use heaptoll_statistics::{FEWEST_PAIRS, Interval};

use crate::document::{Axis, Chart, Form, Item, Series};
use crate::format::{TOO_FEW, and_list, claim, interval};

/// What is compared with itself.
pub const ITSELF: Interval = Interval { ratio: 1.0, low: 1.0, high: 1.0, differs: false, pairs: 0 };

/// More lines than this are drawn without bands.
const BANDED: usize = 6;

/// The places of an axis.
pub struct Places<'a> {
    /// What they are.
    pub axis: &'a str,
    /// Each as it is written.
    pub labels: Vec<String>,
    /// Where each stands, of amounts; without them every place is as far from the next one.
    pub positions: Vec<f64>,
    /// Index of the one that all others are compared with, if it is one of them.
    pub base: Option<usize>,
}

/// A chart a figure and in it a line a subject, where there is more than a point. `figures` are titles, and what
/// ratios are to; `of` gives the ratio of a figure, subject and place, all by index.
pub fn charts(
    what: &str,
    places: &Places,
    figures: &[(&str, &str)],
    subjects: &[&str],
    of: &dyn Fn(usize, usize, usize) -> Option<Interval>,
) -> Vec<Item> {
    let line = |figure: usize, subject: usize| {
        let mut line = Series { name: subjects[subject].into(), ..Series::default() };
        for place in 0..places.labels.len() {
            let found = if Some(place) == places.base { Some(ITSELF) } else { of(figure, subject, place) };
            let Some(found) = found else { continue };
            let at = places.positions.get(place).copied().unwrap_or(place as f64);
            line.points.push((at, found.ratio));
            line.band.extend((subjects.len() <= BANDED).then_some((found.low, found.high)));
            let ratio = if found == ITSELF { "1".into() } else { interval(&found) };
            line.labels.push(format!("{}\n{ratio}", places.labels[place]));
        }
        line
    };
    let chart = |(figure, (title, over)): (usize, &(&str, &str))| {
        let series: Vec<Series> = (0..subjects.len()).map(|subject| line(figure, subject)).collect();
        let values = series.iter().flat_map(|line| &line.points).map(|point| point.1);
        let y = Axis::spread("ratio", values);
        let bands = if subjects.len() <= BANDED { "; the bands are their intervals" } else { "" };
        let form = Form::Lines;
        let x = match places.positions.is_empty() {
            true => Axis { names: places.labels.clone(), ..Axis::even(places.axis) },
            false => Axis::spread(places.axis, places.positions.iter().copied()),
        };
        let has_lines = series.iter().any(|line| line.points.len() > 1);
        let caption = format!("Ratios to {over}{bands}.");
        has_lines
            .then(|| Item::Chart(Chart { title: format!("{title}: {what}"), caption, form, x, y, series }))
    };
    figures.iter().enumerate().filter_map(chart).collect()
}

/// What the last place does, and from which place on a subject takes more; `last` and `none` are what sentences call the
/// last place, and no place.
pub fn sentence(subject: &str, last: &str, none: &str, places: &[(String, Ratios)]) -> Option<String> {
    let (_, ratios) = places.last()?;
    let differences: Vec<String> = [(ratios.cpu, "CPU"), (ratios.peak_rss, "peak memory")]
        .into_iter()
        .filter_map(|(interval, noun)| claim(&interval?, noun))
        .collect();
    if ![ratios.cpu, ratios.peak_rss].into_iter().flatten().any(|interval| interval.has_enough_pairs()) {
        return Some(format!(
            "{subject}: {TOO_FEW} to claim a difference; {FEWEST_PAIRS} good pairs of runs are enough, ten \
             are better (-n)."
        ));
    }
    let of_last = match differences.is_empty() {
        true => "makes no detectable difference".to_string(),
        false => format!("takes {}", and_list(&differences)),
    };
    // From a place on where the last one takes more too; else those that do.
    let reach = |of: fn(&Ratios) -> Option<Interval>| {
        let takes_more =
            |(_, ratios): &(String, Ratios)| of(ratios).is_some_and(|it| it.differs && it.ratio > 1.0);
        let first = places.iter().position(takes_more)?;
        let last = places.iter().rposition(takes_more)?;
        Some(match last + 1 == places.len() {
            true => format!("from {} upwards", places[first].0),
            false if first == last => format!("at {}", places[first].0),
            false => format!("at {} to {}", places[first].0, places[last].0),
        })
    };
    let from = match (reach(|ratios| ratios.cpu), reach(|ratios| ratios.peak_rss)) {
        (None, None) => format!("{none} costs measurably more CPU or memory"),
        (Some(cpu), None) => format!("costs CPU {cpu}; no extra memory detected"),
        (None, Some(memory)) => format!("costs memory {memory}; no extra CPU detected"),
        (Some(cpu), Some(memory)) => format!("costs CPU {cpu}, and memory {memory}"),
    };
    Some(format!("{subject}: {last} {of_last}; {from}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_line_a_subject_and_the_base_is_1_and_there_is_none_of_single_points() {
        let places = |labels: &[&str]| Places {
            axis: "heap",
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            positions: vec![],
            base: Some(0),
        };
        let figures = [("CPU", "1x"), ("Peak memory", "1x")];
        // Memory is not known.
        let of = |figure: usize, _: usize, place: usize| {
            let known = figure == 0 && place > 1;
            known.then_some(Interval { ratio: place as f64, low: 0.5, high: 3.0, ..ITSELF })
        };
        let drawn = charts("cfrac", &places(&["1x", "2x", "3x"]), &figures, &["a", "b"], &of);
        let [Item::Chart(chart)] = &drawn[..] else { panic!("{drawn:?}") };
        assert_eq!((chart.title.as_str(), chart.series.len()), ("CPU: cfrac", 2));
        assert_eq!(chart.series[1].points, [(0.0, 1.0), (2.0, 2.0)], "nothing is known of 2x");
        assert_eq!(chart.series[1].band, [(1.0, 1.0), (0.5, 3.0)]);
        assert_eq!(chart.series[1].labels, ["1x\n1", "3x\n2.00 (0.50–3.00)"]);
        let apart = Places { positions: vec![1.0, 1.5, 4.0], ..places(&["1x", "1.5x", "4x"]) };
        let drawn = charts("cfrac", &apart, &figures, &["a"], &of);
        let [Item::Chart(chart)] = &drawn[..] else { panic!("{drawn:?}") };
        assert_eq!(chart.series[0].points, [(1.0, 1.0), (4.0, 2.0)], "amounts keep their distances");
        assert!(chart.x.names.is_empty());
        assert_eq!(charts("cfrac", &places(&["1x", "2x"]), &figures, &["a"], &of), []);
        let many = charts("cfrac", &places(&["1x", "2x", "3x"]), &figures, &["a"; BANDED + 1], &of);
        let [Item::Chart(chart)] = &many[..] else { panic!("{many:?}") };
        assert!(chart.series.iter().all(|line| line.band.is_empty()) && !chart.caption.contains("bands"));
    }

    #[test]
    fn a_cost_that_ends_below_the_last_place_is_shown_where_it_is() {
        let place = |name: &str, ratio: f64, differs| {
            let cpu = Some(Interval { ratio, low: ratio, high: ratio, differs, pairs: 10 });
            (name.to_owned(), Ratios { cpu, ..Ratios::default() })
        };
        let shown =
            |places: &[(String, Ratios)]| sentence("tithe", "1M", "no value", places).unwrap_or_default();
        let falling = [place("64K", 7.2, true), place("128K", 3.9, true), place("1M", 1.0, false)];
        assert!(shown(&falling).contains("costs CPU at 64K to 128K;"), "{}", shown(&falling));
        assert!(shown(&falling[1..]).contains("costs CPU at 128K;"));
        assert!(shown(&falling[..2]).contains("costs CPU from 64K upwards;"));
        assert!(shown(&falling[2..]).ends_with("; no value costs measurably more CPU or memory."));
    }
}
