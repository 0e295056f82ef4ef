//! Charts of `heaptoll proximity`: for each number of collections a line a collector, as in the paper's Figure 4.

use heaptoll_report::document::{Axis, Chart, Form, Series};
use heaptoll_studies::proximity::Group;

use super::figures::{Program, Stack};

/// What is drawn of a group: its figure and the ends of its interval.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    of: fn(&Group) -> (f64, f64, f64),
    fastest: fn(&Stack) -> Option<f64>,
}

const FIGURES: [Figure; 2] = [
    Figure {
        name: "Mean",
        of: |group| (group.mean_ns, group.mean_low_ns, group.mean_high_ns),
        fastest: |stack| stack.fastest_mean_ns,
    },
    Figure {
        name: "Median",
        of: |group| (group.median_ns, group.median_low_ns, group.median_high_ns),
        fastest: |stack| stack.fastest_median_ns,
    },
];

/// Most collections first, as the paper has them: the closest look on the left.
pub fn charts(program: &Program) -> Vec<Chart> {
    let mut scales: Vec<u64> =
        program.stacks.iter().flat_map(|stack| &stack.scales).map(|scale| scale.aimed_at).collect();
    scales.sort_unstable_by(|a, b| b.cmp(a));
    scales.dedup();
    FIGURES
        .iter()
        .flat_map(|figure| scales.iter().map(move |scale| (figure, *scale)))
        .map(|(figure, aimed_at)| chart(program, aimed_at, figure))
        .collect()
}

fn chart(program: &Program, aimed_at: u64, figure: &Figure) -> Chart {
    let mut series = Vec::new();
    for stack in &program.stacks {
        let Some(scale) = stack.scales.iter().find(|scale| scale.aimed_at == aimed_at) else { continue };
        let Some(fastest) = (figure.fastest)(stack) else { continue };
        let from = scale.grouped.biased_from_ns.unwrap_or(u64::MAX);
        let line = |name: String, marked: bool| {
            let groups =
                || scale.grouped.groups.iter().filter(move |group| (group.from_ns >= from) == marked);
            Series {
                name,
                points: groups()
                    .map(|group| ((group.from_ns + group.to_ns) as f64 / 2e3, (figure.of)(group).0 / fastest))
                    .collect(),
                band: groups()
                    .map(|group| ((figure.of)(group).1 / fastest, (figure.of)(group).2 / fastest))
                    .collect(),
            }
        };
        series.push(line(stack.stack.clone(), false));
        if from != u64::MAX {
            series.push(line(format!("{}, survivor bias", stack.stack), true));
        }
    }
    Chart {
        title: format!("{} time of a request, {aimed_at} collections a run", figure.name),
        caption: "By the time since the last collection; over the fastest group of all numbers of collections, each \
                  collector by itself, so that lines do not say which collector is faster. Bands: 95 %."
            .into(),
        form: Form::Lines,
        x: Axis { title: "from the end of the collection to the start of the request, µs".into(), ..Axis::default() },
        y: Axis { title: "over the fastest".into(), ..Axis::default() },
        series,
    }
}
