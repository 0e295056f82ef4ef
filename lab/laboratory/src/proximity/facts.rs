//! `heaptoll lab proximity`: how long requests take in the ranges of distance between two collections.

use heaptoll_facts::{Comparative, FactWriter, Facts, Metric, Place, Value};
use heaptoll_statistics::{FEWEST_PAIRS, Interval};

use super::figures::{ProximityFigures, Scale};
use super::portions::{Portion, Ratio, beginning};

/// What the names of metrics begin with: portions, and what all of them differ by.
const BEGINNINGS: [&str; 5] = ["first", "near", "second", "last", "spread"];

/// Estimates with the command's own intervals.
impl Comparative for ProximityFigures {
    const METRICS: &'static [Metric] = &[
        Metric::time(
            "_ratio",
            "at collections a run: mean time in the first hundredth, first tenth, second tenth and last fifth after a \
             collection over that in the middle; `spread`: the factor of the farthest of them",
        )
        .of(&BEGINNINGS)
        .at(Place::Collections),
        Metric::time("_median_ratio", "the same of medians").of(&BEGINNINGS).at(Place::Collections),
        Metric::time("near_us", "the first tenth's median distance from the collection").at(Place::Collections),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for program in &self.programs {
            for stack in &program.stacks {
                let mut writer = facts.of(&program.program, &stack.stack);
                stack.scales.iter().for_each(|scale| put(&mut writer, scale));
            }
        }
        facts
    }
}

fn put(writer: &mut FactWriter, scale: &Scale) {
    let at = Some(scale.aimed_at as f64);
    for portion in &scale.stretches {
        let Some(name) = beginning(&portion.name) else { continue };
        writer.ratio(&format!("{name}_ratio"), at, portion.mean.map(Interval::from));
        writer.ratio(&format!("{name}_median_ratio"), at, portion.median.map(Interval::from));
        if name == "near" {
            writer.put("near_us", at, Value::Single(portion.distance_ns as f64 / 1e3));
        }
    }
    let mut spread = |metric: &str, of: fn(&Portion) -> Option<Ratio>| {
        let ratios: Vec<Ratio> = scale.stretches.iter().filter_map(of).collect();
        spread(&ratios).into_iter().for_each(|value| writer.put(metric, at, value));
    };
    spread("spread_median_ratio", |portion| portion.median);
    spread("spread_ratio", |portion| portion.mean);
}

/// By what factor the range that is farthest from the middle differs from it, whichever way. The intervals of all
/// ranges hold together, so it lies between the largest of their nearer ends and the largest of their farther ones,
/// whichever range is the farthest in truth.
fn spread(stretches: &[Ratio]) -> Option<Value> {
    let factor = |ratio: f64| ratio.max(1.0 / ratio);
    let most = |of: &dyn Fn(&Ratio) -> f64| stretches.iter().map(of).reduce(f64::max);
    let value = most(&|ratio| factor(ratio.ratio))?;
    if stretches.iter().any(|ratio| (ratio.runs as usize) < FEWEST_PAIRS) {
        return Some(Value::Single(value));
    }
    let nearer = |ratio: &Ratio| {
        if ratio.low <= 1.0 && ratio.high >= 1.0 { 1.0 } else { factor(ratio.low).min(factor(ratio.high)) }
    };
    let low = most(&nearer)?;
    let high = most(&|ratio| factor(ratio.low).max(factor(ratio.high)))?;
    Some(Value::Estimate { value, low, high })
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{measured, number, one};

    use super::*;
    use crate::proximity::{Program, Stack};

    #[test]
    fn each_range_is_a_metric_of_means_and_of_medians() {
        let of = |mean: f64| Some(Ratio { ratio: mean, low: mean, high: mean, differs: true, runs: 10 });
        let range = |name: &str, mean: f64, median: f64| Portion {
            name: name.into(),
            distance_ns: 878_653,
            mean: of(mean),
            median: of(median),
            cpu_mean: None,
            cpu_median: None,
        };
        let stretches = vec![
            range("first 1 %", 1.07, 1.02),
            range("first 10 %", 0.95, 1.01),
            range("last 20 %", 0.8, 1.0),
        ];
        let stack = Stack {
            stack: "sweep/mimalloc3".into(),
            scales: vec![Scale { stretches, ..Scale::new(10, 1 << 20) }],
            fastest_mean_ns: None,
            fastest_median_ns: None,
            refused: None,
        };
        let program =
            Program { program: "kv".into(), command: vec![], requested_bytes: 0, stacks: vec![stack] };
        let found = ProximityFigures {
            complete: true,
            runs: 10,
            seed: 7,
            programs: vec![program],
            published: vec![],
        };
        let facts = measured(&found);
        let at = |metric: &str| number(one(&facts, metric, Some(10.0)));
        assert_eq!((at("first_ratio"), at("near_ratio"), at("last_ratio")), (1.07, 0.95, 0.8));
        assert_eq!((at("first_median_ratio"), at("near_median_ratio")), (1.02, 1.01));
        assert_eq!((at("spread_ratio"), at("spread_median_ratio")), (1.25, 1.02));
        assert_eq!(at("near_us"), 878.653);
    }

    #[test]
    fn the_spread_is_known_as_well_as_the_ranges_are() {
        let of = |ratio: f64, low: f64, high: f64| Ratio { ratio, low, high, differs: false, runs: 8 };
        let (open, slower, faster) = (of(1.02, 0.9, 1.3), of(1.1, 1.05, 1.15), of(0.8, 0.75, 0.9));
        let value = spread(&[open, slower, faster]);
        let Some(Value::Estimate { value, low, high }) = value else { panic!("{value:?}") };
        assert_eq!(value, 1.25, "a fifth less is a factor of 1.25");
        assert!((low - 1.0 / 0.9).abs() < 1e-12, "at least the faster one's nearer end, {low}");
        assert!((high - 1.0 / 0.75).abs() < 1e-12, "at most the farthest end, {high}");
        let value = spread(&[open]);
        assert!(matches!(value, Some(Value::Estimate { low: 1.0, .. })), "may be none at all: {value:?}");
        let few = Ratio { runs: 5, ..slower };
        assert!(matches!(spread(&[open, few]), Some(Value::Single(_))));
        assert_eq!(spread(&[]), None);
    }
}
