//! The frontier as a picture: memory over CPU time, with the default, what was chosen, what was not decided, and the
//! search, whose figures are no prices.

use heaptoll_report::document::{Axis, Chart, Form, Item, Role, Section, Series};
use heaptoll_report::format::{self, and_list};
use heaptoll_statistics::Interval;

use super::figures::{Candidate, ChooseFigures, Finalist};

const DEFAULT: &str = "default";
const CHOSEN: &str = "chosen";
const UNDECIDED: &str = "not decided against the default";
const DECIDED: &str = "not chosen";
const SEARCHED: &str = "search estimate";

/// Names in the picture, which have a colour and a symbol of their own, the default's grey first.
pub(super) fn palette(figures: &ChooseFigures) -> Vec<String> {
    let drawn = chart(figures).series;
    let is_drawn = |name: &&str| *name == DEFAULT || drawn.iter().any(|series| series.name == *name);
    let names = [DEFAULT, CHOSEN, UNDECIDED, DECIDED, SEARCHED];
    names.iter().filter(|name| is_drawn(name)).map(|name| (*name).to_owned()).collect()
}

/// The section.
pub(super) fn section(figures: &ChooseFigures) -> Section {
    let names = on_frontier(figures);
    let is_fresh = |name: &String| figures.finalists.iter().any(|finalist| finalist.stack == *name);
    let text = names.iter().any(is_fresh).then(|| {
        format!(
            "Pareto frontier: {}. Points other than the finalists are search estimates.",
            and_list(&names)
        )
    });
    let text = text.into_iter().collect();
    Section { title: "Time and memory".into(), text, items: vec![Item::Chart(chart(figures))] }
}

/// Stacks than which no other is both cheaper and smaller, the cheapest first.
fn on_frontier(figures: &ChooseFigures) -> Vec<String> {
    let fresh = figures.finalists.iter().filter(|one| kind(one, figures).is_some());
    let fresh = fresh.map(|one| (one.stack.as_str(), (middle(&one.cpu), middle(&one.memory))));
    let all: Vec<(&str, (f64, f64))> =
        fresh.chain(searched(figures).map(|(row, point)| (row.stack.as_str(), point))).collect();
    let mut best: Vec<&(&str, (f64, f64))> =
        all.iter().filter(|(_, own)| !all.iter().any(|(_, other)| dominates(other, own))).collect();
    best.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    best.into_iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Whether one point is cheaper and smaller than another, or as much of one and less of the other.
fn dominates(other: &(f64, f64), own: &(f64, f64)) -> bool {
    other.0 <= own.0 && other.1 <= own.1 && other != own
}

fn middle(interval: &Option<Interval>) -> f64 {
    interval.as_ref().map_or(1.0, |found| found.ratio)
}

fn chart(figures: &ChooseFigures) -> Chart {
    let mut series = vec![Series {
        name: SEARCHED.into(),
        points: searched(figures).map(|(_, point)| point).collect(),
        labels: searched(figures).map(|(row, point)| candidate_label(row, point)).collect(),
        ..Series::default()
    }];
    for name in [DEFAULT, CHOSEN, UNDECIDED, DECIDED] {
        let of: Vec<&Finalist> =
            figures.finalists.iter().filter(|finalist| kind(finalist, figures) == Some(name)).collect();
        series.push(fresh(name, &of));
    }
    series.retain(|series| !series.points.is_empty());
    let points: Vec<(f64, f64)> = series.iter().flat_map(|series| series.points.iter().copied()).collect();
    series.insert(0, frontier(&points));
    let axis =
        |title: &str, values: Vec<f64>| Axis::spread(&format!("{title}, to {}", figures.baseline), values);
    Chart {
        title: "CPU time against memory".into(),
        caption: "Down and left is better. Whiskers are the intervals of the fresh runs. The line is the \
                  Pareto frontier."
            .into(),
        form: Form::Points,
        x: axis("CPU time", points.iter().map(|point| point.0).collect()),
        y: axis("peak resident memory", points.iter().map(|point| point.1).collect()),
        series,
    }
}

/// Candidates with both ratios that are no finalists: those are drawn by their fresh runs.
fn searched(figures: &ChooseFigures) -> impl Iterator<Item = (&Candidate, (f64, f64))> {
    let is_fresh = |stack: &str| figures.finalists.iter().any(|finalist| finalist.stack == stack);
    let others = figures.candidates.iter().filter(move |row| !is_fresh(&row.stack));
    others.filter_map(|row| Some((row, (row.cpu_ratio?, row.memory_ratio?))))
}

fn candidate_label(row: &Candidate, (cpu, memory): (f64, f64)) -> String {
    let out = row.why_out.as_ref().map(|why| format!("\n{why}")).unwrap_or_default();
    format!("{}\nCPU {cpu:.2}, memory {memory:.2}{out}", row.stack)
}

/// How a finalist is drawn; `None` where it has no figures.
fn kind(finalist: &Finalist, figures: &ChooseFigures) -> Option<&'static str> {
    if finalist.stack == figures.choice && finalist.stack != figures.baseline {
        return Some(CHOSEN);
    }
    if finalist.stack == figures.baseline {
        return Some(DEFAULT);
    }
    let (cpu, memory) = (finalist.cpu.as_ref()?, finalist.memory.as_ref()?);
    Some(if cpu.differs || memory.differs { DECIDED } else { UNDECIDED })
}

fn fresh(name: &str, finalists: &[&Finalist]) -> Series {
    let ends =
        |interval: &Option<Interval>| interval.as_ref().map_or((1.0, 1.0), |found| (found.low, found.high));
    let label = |finalist: &&Finalist| {
        let text =
            |interval: &Option<Interval>| interval.as_ref().map_or_else(|| "1".into(), format::interval);
        format!("{}\nCPU {}\nmemory {}", finalist.stack, text(&finalist.cpu), text(&finalist.memory))
    };
    Series {
        name: name.into(),
        points: finalists.iter().map(|one| (middle(&one.cpu), middle(&one.memory))).collect(),
        across: finalists.iter().map(|one| ends(&one.cpu)).collect(),
        band: finalists.iter().map(|one| ends(&one.memory)).collect(),
        labels: finalists.iter().map(label).collect(),
        ..Series::default()
    }
}

/// The points than which no other is both cheaper and smaller, from the cheapest on.
fn frontier(points: &[(f64, f64)]) -> Series {
    let mut best: Vec<(f64, f64)> =
        points.iter().filter(|own| !points.iter().any(|other| dominates(other, own))).copied().collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    best.dedup();
    Series { name: "frontier".into(), points: best, role: Role::Frontier, ..Series::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Option<Interval> {
        let differs = low > 1.0 || high < 1.0;
        Some(Interval { ratio: (low * high).sqrt(), low, high, differs, pairs: 20 })
    }

    #[test]
    fn each_finalist_is_drawn_by_what_was_decided() {
        let finalist =
            |stack: &str, cpu, memory| Finalist { stack: stack.into(), cpu, memory, ..Finalist::default() };
        let figures = ChooseFigures {
            baseline: "glibc".into(),
            choice: "lean".into(),
            finalists: vec![
                finalist("glibc", None, None),
                finalist("lean", interval(0.98, 1.01), interval(0.5, 0.6)),
                finalist("alike", interval(0.98, 1.01), interval(0.9, 1.1)),
                finalist("broken", None, None),
            ],
            candidates: vec![
                Candidate {
                    stack: "lean".into(),
                    cpu_ratio: Some(9.0),
                    memory_ratio: Some(9.0),
                    ..Candidate::default()
                },
                Candidate {
                    stack: "lost".into(),
                    cpu_ratio: Some(2.0),
                    memory_ratio: Some(3.0),
                    ..Candidate::default()
                },
            ],
            ..ChooseFigures::default()
        };
        let chart = chart(&figures);
        let points =
            |name: &str| chart.series.iter().find(|series| series.name == name).map(|one| one.points.len());
        assert_eq!(
            [DEFAULT, CHOSEN, UNDECIDED, DECIDED, SEARCHED].map(points),
            [Some(1), Some(1), Some(1), None, Some(1)]
        );
        assert_eq!(palette(&figures), [DEFAULT, CHOSEN, UNDECIDED, SEARCHED]);
        assert_eq!(on_frontier(&figures), ["lean"], "cheaper and smaller than all others");
        let frontier = &chart.series[0];
        assert!(frontier.role == Role::Frontier && !frontier.points.contains(&(2.0, 3.0)));
        assert!(
            chart.series.iter().all(|one| one.name != SEARCHED || one.points == [(2.0, 3.0)]),
            "a finalist is drawn once"
        );
        assert_eq!(section(&figures).text.len(), 1);
        let mut lucky = figures;
        (lucky.candidates[1].cpu_ratio, lucky.candidates[1].memory_ratio) = (Some(0.1), Some(0.1));
        assert!(section(&lucky).text.is_empty(), "a frontier of search estimates alone is no finding");
    }
}
