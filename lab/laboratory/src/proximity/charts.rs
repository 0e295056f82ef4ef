//! Charts of `heaptoll lab proximity`: for each number of collections a line a collector, as in the paper's Figure 4.

use heaptoll_report::document::{Axis, Chart, Form, Series};
use heaptoll_report::format::significant;

use super::figures::{Program, Stack};
use super::groups::Group;

/// A drawn figure of a group, and the ends of its interval.
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

/// Most collections first, as in the paper: the finest resolution on the left.
pub fn charts(program: &Program) -> Vec<Chart> {
    let mut scales: Vec<u64> =
        program.stacks.iter().flat_map(|stack| &stack.scales).map(|scale| scale.aimed_at).collect();
    scales.sort_unstable_by(|a, b| b.cmp(a));
    scales.dedup();
    FIGURES
        .iter()
        .flat_map(|figure| scales.iter().map(move |scale| (figure, *scale)))
        .map(|(figure, aimed_at)| chart(program, aimed_at, figure))
        .chain(program.stacks.iter().filter_map(overlaid))
        .collect()
}

fn chart(program: &Program, aimed_at: u64, figure: &Figure) -> Chart {
    // The biased ends come last, so that a collector has the same colour in every chart.
    let (mut series, mut biased) = (Vec::new(), Vec::new());
    for stack in &program.stacks {
        let Some(scale) = stack.scales.iter().find(|scale| scale.aimed_at == aimed_at) else { continue };
        let Some(fastest) = (figure.fastest)(stack) else { continue };
        let groups = &scale.grouped.groups;
        let from = scale.grouped.biased_from_ns.unwrap_or(u64::MAX);
        let line = |name: String, marked: bool| {
            let shown =
                || groups.iter().enumerate().filter(move |(_, group)| (group.from_ns >= from) == marked);
            let share = |at: usize| 100.0 * (at as f64 + 0.5) / groups.len() as f64;
            let over = |value: f64| value / fastest;
            Series {
                name,
                points: shown().map(|(at, group)| (share(at), over((figure.of)(group).0))).collect(),
                band: shown()
                    .map(|(_, group)| (over((figure.of)(group).1), over((figure.of)(group).2)))
                    .collect(),
                ..Series::default()
            }
        };
        series.push(line(stack.stack.clone(), false));
        if from != u64::MAX {
            biased.push(line(format!("{}, survivor bias", stack.stack), true));
        }
    }
    series.append(&mut biased);
    let reach = |stack: &Stack| {
        let scale = stack.scales.iter().find(|scale| scale.aimed_at == aimed_at)?;
        let groups = &scale.grouped.groups;
        let at =
            |share: usize| groups.get(groups.len() * share / 100).map(|group| group.from_ns as f64 / 1e3);
        Some(format!(
            "{}: {} at 10 %, {} at 50 %, {} at 90 %",
            stack.stack,
            significant(at(10)?),
            significant(at(50)?),
            significant(at(90)?)
        ))
    };
    let reaches: Vec<String> = program.stacks.iter().filter_map(reach).collect();
    Chart {
        title: format!("{} time of a request, {aimed_at} collections a run", figure.name),
        caption: format!(
            "Nearest to a collection on the left. Each collector is compared with its own fastest group, so \
             lines do not show which collector is faster. The fastest of many is fastest by chance too, so a \
             line without any effect lies above 1. Bands: 95 %, each group by itself. Distances in µs, {}.",
            reaches.join("; ")
        ),
        form: Form::Lines,
        x: Axis::even("requests by distance to the last collection, % that are nearer"),
        // A group that the machine disturbed would press the others flat.
        y: Axis::log("ratio to the fastest"),
        series,
    }
}

/// Medians over distances, the numbers of collections on top of each other: what belongs to a distance is at the same
/// place in all of them, what belongs to the end of a period moves with it (the paper's argument for survivor bias).
fn overlaid(stack: &Stack) -> Option<Chart> {
    let fastest = stack.fastest_median_ns?;
    let series = stack.scales.iter().rev().map(|scale| Series {
        name: format!("{} collections", scale.aimed_at),
        points: scale
            .grouped
            .groups
            .iter()
            .map(|group| ((group.from_ns + group.to_ns) as f64 / 2e3, group.median_ns / fastest))
            .collect(),
        band: scale
            .grouped
            .groups
            .iter()
            .map(|group| (group.median_low_ns / fastest, group.median_high_ns / fastest))
            .collect(),
        ..Series::default()
    });
    Some(Chart {
        title: format!("Median time of a request by distance, {}", stack.stack),
        caption: "The effect of a collection on later requests is at the same distance on all lines. A rise \
                  at the right end of only one line is survivor bias."
            .into(),
        form: Form::Lines,
        x: Axis::log("from the end of the collection to the start of the request, µs"),
        y: Axis::even("ratio to the fastest"),
        series: series.collect(),
    })
}
