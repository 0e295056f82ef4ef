//! What was found over the places of an axis: charts of ratios, and a sentence.

use heaptoll_experiment::comparison::Ratios;
use heaptoll_statistics::{FEWEST_PAIRS, Interval};

use crate::document::{Axis, Chart, Form, Item, Series};
use crate::format::{TOO_FEW, and_list, claim};

/// What a chart of ratios over an axis shows.
pub struct Lines<'a> {
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Titles of the axes.
    pub axes: [String; 2],
    /// The places.
    pub places: Vec<String>,
    /// Index of the one that all others are compared with, if it is one of them.
    pub base: Option<usize>,
    /// A line each.
    pub names: Vec<&'a str>,
    /// Whether lines have their intervals as bands.
    pub banded: bool,
}

/// The chart; `of` gives the ratio of a line at a place, both by index.
pub fn lines(shown: Lines, of: &dyn Fn(usize, usize) -> Option<Interval>) -> Item {
    let series = shown.names.iter().enumerate().map(|(name, text)| {
        let mut line = Series { name: (*text).into(), ..Series::default() };
        for place in 0..shown.places.len() {
            let (ratio, ends) = match of(name, place) {
                _ if Some(place) == shown.base => (1.0, (1.0, 1.0)),
                Some(interval) => (interval.ratio, (interval.low, interval.high)),
                None => continue,
            };
            line.points.push((place as f64, ratio));
            if shown.banded {
                line.band.push(ends);
            }
        }
        line
    });
    let series = series.collect();
    let [x, y] = shown.axes;
    Item::Chart(Chart {
        title: shown.title,
        caption: shown.caption,
        form: Form::Lines,
        x: Axis { title: x, names: shown.places, ..Axis::default() },
        y: Axis { title: y, ..Axis::default() },
        series,
    })
}

/// CPU and memory by place, a line a subject, with bands. `of` has subject and place by index; `titles` are of what is
/// shown, of the axis of places, and of what ratios are to.
pub fn charts(
    titles: [&str; 3],
    (places, base): (Vec<String>, Option<usize>),
    subjects: &[String],
    of: &dyn Fn(usize, usize) -> Option<Ratios>,
) -> [Item; 2] {
    let [what, axis, over] = titles;
    let chart = |title: &str, metric: fn(&Ratios) -> Option<Interval>| {
        let shown = Lines {
            title: format!("{title}: {what}"),
            caption: format!("Ratios to {over}; the bands are their intervals."),
            axes: [axis.into(), format!("ratio to {over}")],
            places: places.clone(),
            base,
            names: subjects.iter().map(String::as_str).collect(),
            banded: true,
        };
        lines(shown, &|subject, place| of(subject, place).and_then(|ratios| metric(&ratios)))
    };
    [chart("CPU", |ratios| ratios.cpu), chart("Peak memory", |ratios| ratios.peak_rss)]
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
