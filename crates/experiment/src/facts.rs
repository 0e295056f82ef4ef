//! The facts of `heaptoll run`: samples by repetition.

use heaptoll_facts::{Absent, Comparative, Facts, Metric, Value, metrics};

use crate::comparison;
use crate::experiment::{Experiment, StackInfo};
use crate::observation::{Collections, Observation, Outcome};
use crate::seconds::{Seconds, cpu_seconds};
use crate::side::{Side, Sides};

/// CPU seconds; those of runs at once where runs are in lockstep.
pub const AT_ONCE: &str = "cpu_s";
/// CPU seconds of runs alone, there only where there are runs at once.
pub const ALONE: &str = "cpu_alone_s";
/// CPU seconds of a collector in a fixed heap over the first manager's.
pub const HEAP_CPU_RATIO: &str = "heap_cpu_ratio";
/// How many collections were made.
pub const COLLECTIONS: &str = "collections";

/// One repetition of a program under a stack.
struct Run<'a> {
    side: &'a Side<'a>,
    seconds: &'a Seconds,
    repetition: u32,
}

impl Run<'_> {
    /// What has no start-up to be taken off is of runs alone where there are runs at once.
    fn row(&self) -> Option<&Observation> {
        self.side.row_in(self.side.by_itself(), self.repetition)
    }

    fn collections(&self) -> Option<Collections> {
        self.row()?.collections
    }

    fn sample(&self, samples: &[Option<f64>]) -> Option<f64> {
        *samples.get(self.repetition as usize)?
    }
}

/// A metric of one repetition, where it has it.
type Of = fn(&Run) -> Option<f64>;

/// The last two are put apart.
const ALL: [(Metric, Of); 17] = [
    (
        Metric::time(AT_ONCE, "without start-up; a lower bound if each run was killed at the time limit"),
        |run| run.sample(&run.seconds.cpu_s),
    ),
    (Metric::time(ALONE, "of separate runs, if `cpu_s` is of lockstep"), |run| {
        run.sample(run.seconds.alone_s.as_ref()?)
    }),
    (Metric::time("wall_s", "without start-up"), |run| {
        run.side.value_in(comparison::Metric::Wall, run.repetition)
    }),
    (Metric::time("user_s", "CPU time of the program"), |run| Some(run.row()?.user_s)),
    (Metric::time("system_s", "CPU time of the kernel"), |run| Some(run.row()?.system_s)),
    (Metric::count("peak_rss_kib", "peak resident memory"), |run| Some(run.row()?.peak_rss_kib as f64)),
    (Metric::count("minor_faults", "page faults without disk"), |run| Some(run.row()?.minor_faults as f64)),
    (Metric::count("major_faults", "page faults with disk"), |run| Some(run.row()?.major_faults as f64)),
    (Metric::count("heap_high_kib", "most mapped"), |run| run.row()?.heap_high_water_bytes.map(kib)),
    (Metric::count("used_high_kib", "most pages with blocks"), |run| run.row()?.used_high_bytes.map(kib)),
    (Metric::count(COLLECTIONS, "of the collector"), |run| Some(run.collections()?.count as f64)),
    (Metric::time("pause_total_s", "all pauses"), |run| Some(seconds(run.collections()?.pause_total_ns))),
    (Metric::time("pause_max_s", "the longest pause"), |run| Some(seconds(run.collections()?.pause_max_ns))),
    (Metric::count("reclaimed_kib", "by collections"), |run| Some(kib(run.collections()?.reclaimed_bytes))),
    (Metric::time("collector_cpu_s", "CPU time of the collector"), |run| {
        run.row()?.collector_cpu_ns.map(seconds)
    }),
    (
        Metric::time(
            HEAP_CPU_RATIO,
            "of a collector over the first manager, at multiples of its smallest heap; needs `--heaps=...`",
        ),
        |_| None,
    ),
    (Metric::time("figure_", "the program's own; `figure_rounds_8` is `figure_rounds` at 8").open(), |_| {
        None
    }),
];

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Samples by repetition, and which programs ran otherwise than in lockstep where that was wanted. A figure that failed or
/// was not reported in a repetition is a gap there; what no row has gives no fact.
impl Comparative for Experiment {
    const METRICS: &'static [Metric] = &metrics(&ALL);

    fn facts(&self) -> Facts {
        let repetitions = self.repetitions();
        let mut facts = Facts { absent: absent(self), ..Facts::default() };
        for program in &self.programs {
            let cpu = cpu_seconds(self, &program.name, repetitions);
            facts.pairing.extend(cpu.notes.iter().map(|note| format!("{}: {note}", program.name)));
            for (side, seconds) in Sides::of(self, &program.name).all.iter().zip(&cpu.stacks) {
                if let Some(limit) = self.heap_limit(&program.name, side.stack) {
                    let baseline = cpu.stacks.iter().find(|cpu| cpu.stack == self.baseline);
                    if let Some(ratios) = baseline.and_then(|baseline| ratios(seconds, baseline)) {
                        let mut writer = facts.of(&program.name, &limit.collector);
                        writer.put(HEAP_CPU_RATIO, Some(limit.factor), Value::Samples(ratios));
                    }
                    continue;
                }
                let varied = self.varied(&program.name, side.stack);
                let (manager, at) =
                    varied.map_or((side.stack, None), |one| (one.manager.as_str(), Some(one.at as f64)));
                let mut writer = facts.of(&program.name, manager);
                let mut put = |metric: &str, value: &dyn Fn(u32) -> Option<f64>| {
                    // The system counts in microseconds; further digits would double the files of a published run.
                    let rounded = |value: f64| (value * 1e6).round() / 1e6;
                    let samples: Vec<_> = (0..repetitions).map(|at| value(at).map(rounded)).collect();
                    if samples.iter().any(Option::is_some) {
                        writer.put(metric, at, Value::Samples(samples));
                    }
                };
                for (metric, of) in &ALL {
                    put(metric.id, &|repetition| of(&Run { side, seconds, repetition }));
                }
                for name in side.own_names() {
                    put(&format!("figure_{name}"), &|repetition| side.own_in(name, repetition));
                }
            }
        }
        for stack in &self.stacks {
            if let Some(least_s) = bound(self, stack) {
                facts.of(&stack.program, &stack.name).put(AT_ONCE, None, Value::AtLeast(least_s));
            }
        }
        facts
    }
}

/// CPU seconds of a stack over the baseline's, by repetition; `None` where no repetition has both.
fn ratios(of: &Seconds, baseline: &Seconds) -> Option<Vec<Option<f64>>> {
    let pairs = of.cpu_s.iter().zip(&baseline.cpu_s);
    let ratios: Vec<Option<f64>> = pairs.map(|(of, baseline)| Some((*of)? / (*baseline)?)).collect();
    ratios.iter().any(Option::is_some).then_some(ratios)
}

/// CPU seconds of a stack if the time limit ended each run: at least what the shortest of them had taken,
/// start-up taken off. That such a program is slow is known, and the strongest evidence would be left out.
fn bound(experiment: &Experiment, stack: &StackInfo) -> Option<f64> {
    let rows = timed_rows(experiment, stack);
    let killed = |row: &&Observation| matches!(row.outcome, Outcome::Timeout(_));
    // In a heap that is too small a run takes as long as it may.
    if stack.heap.is_some() || rows.is_empty() || !rows.iter().all(killed) {
        return None;
    }
    let sides = Sides::of(experiment, &stack.program);
    let start_up_s = sides.find(&stack.name).and_then(|side| side.startup_cpu_s()).unwrap_or_default();
    let least_s = rows.iter().map(|row| row.cpu_s() - start_up_s).reduce(f64::min)?;
    (least_s > 0.0).then_some(least_s)
}

/// A stack's runs, in lockstep and alone.
fn timed_rows<'a>(experiment: &'a Experiment, stack: &StackInfo) -> Vec<&'a Observation> {
    let rows = experiment.rows(&stack.program, &stack.name);
    rows.filter(|row| row.phase.is_compared()).collect()
}

/// What was refused, and what failed.
fn absent(experiment: &Experiment) -> Vec<Absent> {
    let mut all: Vec<_> = experiment
        .refused
        .iter()
        .map(|(program, stack, why)| {
            // A program that does not run under the baseline is left out under all.
            let whole = *stack == experiment.baseline;
            (program.clone(), (!whole).then(|| stack.clone()), why.clone())
        })
        .collect();
    for stack in &experiment.stacks {
        let rows = timed_rows(experiment, stack);
        let bad = || rows.iter().filter(|row| !row.outcome.is_ok());
        if let Some(first) = bad().next() {
            let why = format!("{} of {} runs: {}", bad().count(), rows.len(), first.outcome);
            all.push((stack.program.clone(), Some(stack.name.clone()), why));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::Fact;
    use heaptoll_facts::testing::{measured, value};

    use super::*;
    use crate::heap_limit::HeapLimit;
    use crate::observation::Phase;
    use crate::varied::Varied;

    /// A tiny cfrac under two managers, shortened: lists that are not read are empty.
    fn run() -> Experiment {
        let text = include_str!("../testdata/run.json");
        let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
        serde_json::from_value(document["experiment"].clone()).expect("the command's JSON")
    }

    fn samples(facts: &[Fact], manager: &str, metric: &str) -> Vec<Option<f64>> {
        match value(facts, manager, metric, None) {
            Some(Value::Samples(samples)) => samples,
            other => panic!("{metric} of {manager}: {other:?}"),
        }
    }

    #[test]
    fn times_are_without_start_up_and_the_rest_as_it_is_by_repetition() {
        let facts = measured(&run());
        // 9.991 ms less 1.071 ms; 10.1 ms less 1.091 ms.
        assert_eq!(samples(&facts, "kingsley", "cpu_s"), [Some(0.00892), Some(0.009009)]);
        assert_eq!(samples(&facts, "bw16", "cpu_s"), [Some(0.013238), Some(0.012983)]);
        assert_eq!(samples(&facts, "kingsley", "wall_s"), [Some(0.007849), Some(0.016459)]);
        assert_eq!(samples(&facts, "bw16", "user_s"), [Some(0.011406), Some(0.014061)]);
        assert_eq!(samples(&facts, "kingsley", "peak_rss_kib"), [Some(1648.0), Some(1488.0)]);
        assert_eq!(samples(&facts, "bw16", "heap_high_kib"), [Some(384.0); 2]);
        assert_eq!(samples(&facts, "bw16", "collections"), [Some(66.0); 2]);
        assert_eq!(samples(&facts, "bw16", "pause_max_s"), [Some(0.002146), Some(0.001192)]);
        assert_eq!(samples(&facts, "kingsley", "collections"), [Some(0.0); 2]);
        assert_eq!(value(&facts, "kingsley", "used_high_kib", None), None, "it does not report");
        assert!(run().facts().absent.is_empty());
    }

    #[test]
    fn a_run_that_failed_is_a_gap_in_its_repetition_and_reported() {
        let mut found = run();
        let rows = &mut found.observations;
        let row = rows
            .iter_mut()
            .find(|row| row.phase == Phase::Timed && row.stack == "bw16" && row.repetition == 0);
        row.expect("a row").outcome = Outcome::Signal(11);
        let refused = |program: &str, stack: &str, why: &str| (program.into(), stack.into(), why.into());
        found.refused = vec![refused("lua", "kingsley", "static"), refused("cfrac", "knuth", "no")];
        let facts = measured(&found);
        assert_eq!(samples(&facts, "bw16", "peak_rss_kib"), [None, Some(2024.0)]);
        assert_eq!(samples(&facts, "kingsley", "peak_rss_kib"), [Some(1648.0), Some(1488.0)]);
        let absent = found.facts().absent;
        // A program that the baseline does not serve is left out whole.
        assert_eq!(absent[0], ("lua".into(), None, "static".into()));
        assert_eq!(absent[1], ("cfrac".into(), Some("knuth".into()), "no".into()));
        assert_eq!(
            absent[2],
            ("cfrac".into(), Some("bw16".into()), "1 of 2 runs: killed by signal 11".into())
        );
    }

    /// A manager that was too slow to be measured was left out as if it had not been run.
    #[test]
    fn runs_that_were_all_killed_at_the_limit_give_a_bound() {
        let killed = |repetitions: u32| {
            let mut found = run();
            let timed = |row: &&mut Observation| {
                row.phase == Phase::Timed && row.stack == "bw16" && row.repetition < repetitions
            };
            for row in found.observations.iter_mut().filter(timed) {
                (row.outcome, row.user_s, row.system_s) =
                    (Outcome::Timeout(5.0), 4.0, f64::from(row.repetition));
            }
            value(&measured(&found), "bw16", "cpu_s", None)
        };
        let Some(Value::AtLeast(bound)) = killed(2) else { panic!("{:?}", killed(2)) };
        // The shorter of the two, less its start-up of a millisecond.
        assert!(bound > 3.99 && bound < 4.0, "{bound}");
        assert!(matches!(killed(1), Some(Value::Samples(_))), "one good run is a figure");
    }

    #[test]
    fn figures_of_a_load_and_of_the_program_itself_are_metrics() {
        let mut found = run();
        for row in found.observations.iter_mut().filter(|row| row.stack == "bw16") {
            row.figures = [("longest_pause_ms".to_owned(), 3.5)].into();
        }
        let facts = measured(&found);
        assert_eq!(samples(&facts, "bw16", "figure_longest_pause_ms"), [Some(3.5); 2]);
        assert_eq!(value(&facts, "kingsley", "figure_longest_pause_ms", None), None);
    }

    #[test]
    fn a_collector_in_a_fixed_heap_is_a_ratio_at_its_factor() {
        let mut found = run();
        let stack = found.stacks.iter_mut().find(|stack| stack.name == "bw16").expect("a stack");
        stack.heap = Some(HeapLimit::of("bw26", 1.5, 1 << 20));
        let facts = measured(&found);
        let Some(Value::Samples(ratios)) = value(&facts, "bw26", "heap_cpu_ratio", Some(1.5)) else {
            panic!("{facts:#?}")
        };
        // 13.238 ms over 8.92 ms.
        assert!(
            ratios.len() == 2 && ratios[0].is_some_and(|ratio| (ratio - 1.484).abs() < 0.001),
            "{ratios:?}"
        );
        assert!(facts.iter().all(|fact| fact.manager != "bw16"), "bw16 is not a manager of the step");
    }

    #[test]
    fn a_varied_setting_is_its_manager_at_a_value() {
        let mut found = run();
        let stack = found.stacks.iter_mut().find(|stack| stack.name == "bw16").expect("a stack");
        stack.varied =
            Some(Varied { manager: "bw26".into(), value: "64K".into(), at: 65536, ..Varied::default() });
        let facts = measured(&found);
        let cpu = |manager: &str, at| value(&facts, manager, "cpu_s", at).is_some();
        assert!(cpu("bw26", Some(65536.0)) && !cpu("bw26", None) && !cpu("bw16", None), "{facts:#?}");
    }
}
