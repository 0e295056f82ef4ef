//! What a gate measured: each metric of both builds, which stand in place of managers, and the new build's over the base's.

use heaptoll_facts::{Comparative, Facts, Metric, Value};

use super::figures::{Change, Figures, MetricFigures};

const COUNTS: [&str; 7] =
    ["instructions", "malloc_instructions", "allocations", "frees", "bytes", "live", "exit"];
const PIECES: [&str; 2] = ["resident", "faults"];
const TIMES: [&str; 3] = ["cpu", "wall", "startup"];
const OF_BUILD: &str = "of a build, as in its limits";
const OF_BOTH: &str = "the new build's over the base's";

impl Comparative for Figures {
    const METRICS: &'static [Metric] = &[
        Metric::count("", OF_BUILD).of(&COUNTS),
        Metric::count("", OF_BUILD).of(&PIECES),
        Metric::time("", OF_BUILD).of(&TIMES),
        Metric::count("_ratio", OF_BOTH).of(&COUNTS),
        Metric::count("_ratio", OF_BOTH).of(&PIECES),
        Metric::time("_ratio", OF_BOTH).of(&TIMES),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        facts.absent.extend(self.refused.iter().map(|one| (one.name.clone(), None, one.why.clone())));
        for program in &self.programs {
            program.failure.iter().for_each(|why| facts.lack(&program.name, "new", why));
            for one in &program.metrics {
                let metric = one.metric.name();
                for (side, figure) in [("base", one.base), ("new", one.new)] {
                    let value = figure.map(|figure| value(one, figure));
                    value
                        .into_iter()
                        .for_each(|value| facts.of(&program.name, side).put(metric, None, value));
                }
                let (mut writer, ratio) = (facts.of(&program.name, "new"), format!("{metric}_ratio"));
                match one.change {
                    Change::None => {}
                    Change::Exact { ratio: of } => writer.put(&ratio, None, value(one, of)),
                    Change::Measured(interval) => writer.ratio(&ratio, None, Some(interval)),
                }
            }
        }
        facts
    }
}

/// A count that varies by itself is no exact one.
fn value(of: &MetricFigures, figure: f64) -> Value {
    match of.metric.is_counted() && of.base_again.is_none() {
        true => Value::Exact(figure),
        false => Value::Single(figure),
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{assert_exact, measured, number, value};

    use super::*;
    use crate::made_up;
    use crate::metric::Metric as OfGate;

    #[test]
    fn both_builds_have_their_figures_and_the_new_one_its_ratios() {
        let facts = measured(&made_up::figures());
        assert_exact(&facts, "base", "instructions", None, 10_000_000.0);
        assert_exact(&facts, "new", "instructions_ratio", None, 1.01);
        let cpu = |metric| value(&facts, "new", metric, None).as_ref().map(number);
        assert_eq!((cpu("cpu"), cpu("cpu_ratio"), cpu("startup")), (Some(0.505), Some(1.01), None));
    }

    #[test]
    fn every_metric_is_declared() {
        let is_count = |metric: OfGate| {
            let mut known = Figures::METRICS.iter().filter(|known| known.is(metric.name()));
            known.next().expect("it is declared").is_count
        };
        for metric in OfGate::ALL {
            assert_eq!(is_count(metric), metric.unit() != crate::metric::Unit::Seconds, "{metric:?}");
        }
    }
}
