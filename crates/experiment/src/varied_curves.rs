//! Costs over the values of a setting that `heaptoll run --vary` varies: each value is a stack of its own in the same
//! paired runs, compared with the same manager without the setting.

use std::collections::BTreeMap;

use crate::comparison::{Ratios, VariedCurve, VariedPoint};
use crate::experiment::Experiment;
use crate::setting::Settings;
use crate::sweep::{Mean, Sweep};
use crate::varied::Varied;

/// What varies in an experiment, and nothing where that is nothing. Medians are those of its tables.
pub(crate) type Axis = Settings<i64, ()>;

/// The axis of an experiment.
pub(crate) fn axis(experiment: &Experiment) -> Axis {
    let stacks = experiment.stacks.iter();
    let varied: BTreeMap<String, Varied> =
        stacks.filter_map(|stack| Some((stack.name.clone(), stack.varied.clone()?))).collect();
    let part = move |stack: &str| match varied.get(stack) {
        Some(varied) => Some((varied.manager.clone(), Some(varied.at))),
        None => Some((stack.to_owned(), None)),
    };
    Settings { part: Box::new(part), base: None, medians: |_| None }
}

/// Values with their good runs, or programs of a mean, and ratios.
type Points = Vec<(i64, u32, Ratios)>;

/// The curves by program and manager, then the means by manager.
pub(crate) fn curves(experiment: &Experiment, found: &Sweep<Axis>) -> Vec<VariedCurve> {
    let of_programs = found.programs.iter().map(|swept| {
        let points = swept.settings().map(|(at, good, _, ratios)| (at, good, ratios));
        (Some(swept.program.clone()), &swept.subject, points.collect::<Points>())
    });
    let of_means = found.subjects.iter().map(|manager| {
        let own = found.means.iter().filter(|mean| mean.subject == *manager);
        let point =
            |mean: &Mean<Axis>| Some((mean.ratios.0?, mean.programs, Ratios::of(Some(&mean.ratios.1))));
        (None, manager, own.filter_map(point).collect())
    });
    let curve = |(program, manager, points): (Option<String>, &String, Points)| {
        let stack = |at: i64| {
            let of = |varied: &&Varied| varied.manager == *manager && varied.at == at;
            experiment.stacks.iter().find_map(|stack| Some((stack, stack.varied.as_ref().filter(of)?)))
        };
        let setting = stack(points.first()?.0)?.1.setting.clone();
        let point = |(at, good, ratios): (i64, u32, Ratios)| {
            let (stack, varied) = stack(at)?;
            Some(VariedPoint { stack: stack.name.clone(), value: varied.value.clone(), at, good, ratios })
        };
        let points = points.into_iter().filter_map(point).collect();
        Some(VariedCurve { program, manager: manager.clone(), setting, points })
    };
    of_programs.chain(of_means).filter_map(curve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, judge_outputs};
    use crate::testing::{experiment, row};

    #[test]
    fn each_value_is_compared_with_the_same_manager_without_the_setting() {
        let stacks = ["glibc", "m", "q=1/m", "q=4K/m"];
        let mut made = experiment(&stacks);
        for (stack, (value, at)) in made.stacks[2..].iter_mut().zip([("1", 1), ("4K", 4096)]) {
            let (manager, setting) = ("m".to_owned(), "q".to_owned());
            stack.varied = Some(Varied { manager, setting, value: value.into(), at });
        }
        for (stack, cpu_s) in stacks.into_iter().zip([10.0, 1.0, 1.0, 1.5]) {
            for repetition in 0..8 {
                let noise = 1.0 + 0.001 * f64::from((repetition * 7 + stack.len() as u32) % 5);
                made.observations.push(row(stack, repetition, cpu_s * noise, 1000));
            }
        }
        judge_outputs(&mut made);
        let found = compare(&made).varied;
        let [VariedCurve { program: Some(program), manager, setting, points }] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((program.as_str(), manager.as_str(), setting.as_str()), ("prog", "m", "q"));
        let values: Vec<(&str, &str, i64, u32)> =
            points.iter().map(|one| (one.stack.as_str(), one.value.as_str(), one.at, one.good)).collect();
        assert_eq!(values, [("q=1/m", "1", 1, 8), ("q=4K/m", "4K", 4096, 8)]);
        let [none, half] = [0, 1].map(|at| points[at].ratios.cpu.expect("pairs"));
        assert!(!none.differs && half.differs && (half.ratio - 1.5).abs() < 0.01, "{none:?} {half:?}");
        // What runs without the setting is no curve, and an experiment that varies nothing has none.
        made.stacks.iter_mut().for_each(|stack| stack.varied = None);
        assert_eq!(compare(&made).varied, []);
    }
}
