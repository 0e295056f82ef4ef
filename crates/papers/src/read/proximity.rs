//! `heaptoll lab proximity`: how long requests take in the ranges of distance between two collections.

use heaptoll_experiments::proximity::Figures;
use heaptoll_experiments::proximity::Ratio;
use heaptoll_statistics::{FEWEST_PAIRS, Interval};

use super::cell_writer::CellWriter;
use super::reading::Reading;
use crate::definition::Step;
use crate::figures::Value;

/// Ranges of distance between two collections as `heaptoll lab proximity` names them, and as metrics.
const RANGES: [(&str, &str); 4] =
    [("first 1 %", "first"), ("first 10 %", "near"), ("second 10 %", "second"), ("last 20 %", "last")];
/// The range just after a collection.
const NEAR: &str = "first 10 %";

/// Estimates with the command's own intervals.
pub fn reading(found: &Figures, step: &Step) -> Reading {
    let mut reading = Reading::default();
    let cells = &mut reading.cells;
    for program in &found.programs {
        for stack in &program.stacks {
            let mut writer =
                CellWriter { step: &step.id, program: &program.program, manager: &stack.stack, cells };
            for scale in &stack.scales {
                let at = Some(scale.aimed_at as f64);
                for range in &scale.stretches {
                    let Some((_, name)) = RANGES.iter().find(|(of, _)| *of == range.name) else {
                        continue;
                    };
                    writer.ratio(&format!("{name}_ratio"), at, range.mean.map(interval));
                    writer.ratio(&format!("{name}_median_ratio"), at, range.median.map(interval));
                    if range.name == NEAR {
                        writer.put("near_us", at, Value::Single(range.distance_ns as f64 / 1e3));
                    }
                }
                let medians: Vec<&Ratio> =
                    scale.stretches.iter().filter_map(|range| range.median.as_ref()).collect();
                if let Some(value) = spread(&medians) {
                    writer.put("spread_median_ratio", at, value);
                }
                let means: Vec<&Ratio> =
                    scale.stretches.iter().filter_map(|range| range.mean.as_ref()).collect();
                if let Some(value) = spread(&means) {
                    writer.put("spread_ratio", at, value);
                }
            }
        }
    }
    reading
}

/// The same as of all other comparisons, whose pairs are runs here.
fn interval(ratio: Ratio) -> Interval {
    let Ratio { ratio, low, high, differs, runs } = ratio;
    Interval { ratio, low, high, differs, pairs: runs }
}

/// By what factor the range that is farthest from the middle differs from it, whichever way. The intervals of all
/// ranges hold together, so it lies between the largest of their nearer ends and the largest of their farther ones,
/// whichever range is the farthest in truth.
fn spread(stretches: &[&Ratio]) -> Option<Value> {
    let factor = |ratio: f64| ratio.max(1.0 / ratio);
    let most = |of: &dyn Fn(&Ratio) -> f64| stretches.iter().map(|ratio| of(ratio)).reduce(f64::max);
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
    use heaptoll_experiments::proximity::Portion;
    use heaptoll_experiments::proximity::{Program, Scale, Stack};

    use super::super::testing::{number, one, step};
    use super::*;
    use crate::definition::StepKind;

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
        let found = Figures { complete: true, runs: 10, seed: 7, programs: vec![program], published: vec![] };
        let cells = reading(&found, &step(StepKind::Proximity)).cells;
        let at = |metric: &str| number(one(&cells, metric, Some(10.0)));
        assert_eq!((at("first_ratio"), at("near_ratio"), at("last_ratio")), (1.07, 0.95, 0.8));
        assert_eq!((at("first_median_ratio"), at("near_median_ratio")), (1.02, 1.01));
        assert_eq!((at("spread_ratio"), at("spread_median_ratio")), (1.25, 1.02));
        assert_eq!(at("near_us"), 878.653);
    }

    #[test]
    fn the_spread_is_known_as_well_as_the_ranges_are() {
        let of = |ratio: f64, low: f64, high: f64| Ratio { ratio, low, high, differs: false, runs: 8 };
        let (open, slower, faster) = (of(1.02, 0.9, 1.3), of(1.1, 1.05, 1.15), of(0.8, 0.75, 0.9));
        let value = spread(&[&open, &slower, &faster]);
        let Some(Value::Estimate { value, low, high }) = value else { panic!("{value:?}") };
        assert_eq!(value, 1.25, "a fifth less is a factor of 1.25");
        assert!((low - 1.0 / 0.9).abs() < 1e-12, "at least the faster one's nearer end, {low}");
        assert!((high - 1.0 / 0.75).abs() < 1e-12, "at most the farthest end, {high}");
        let value = spread(&[&open]);
        assert!(matches!(value, Some(Value::Estimate { low: 1.0, .. })), "may be none at all: {value:?}");
        let few = Ratio { runs: 5, ..slower };
        assert!(matches!(spread(&[&open, &few]), Some(Value::Single(_))));
        assert_eq!(spread(&[]), None);
    }
}
