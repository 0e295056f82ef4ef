//! Timed repetitions: `heaptoll run`.

use crate::definition::Step;
use crate::figures::{ALONE, AT_ONCE, Cell, HEAP_CPU_RATIO, Value};
use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::observation::{Observation, Outcome, Phase};
use heaptoll_experiment::seconds::{Seconds, cpu_seconds};
use heaptoll_experiment::side::Sides;

use super::cell_writer::CellWriter;
use super::reading::{Absent, Reading};

/// A figure of one row, where it has it.
type Take = fn(&Observation) -> Option<f64>;

/// Figures that are taken as they are, of runs alone where there are runs at once. CPU seconds and `wall_s` have start-up
/// taken off, as the tables of `heaptoll run`.
const PLAIN: [(&str, Take); 12] = [
    ("user_s", |row| Some(row.user_s)),
    ("system_s", |row| Some(row.system_s)),
    ("peak_rss_kib", |row| Some(row.peak_rss_kib as f64)),
    ("minor_faults", |row| Some(row.minor_faults as f64)),
    ("major_faults", |row| Some(row.major_faults as f64)),
    ("heap_high_kib", |row| row.heap_high_water_bytes.map(kib)),
    ("used_high_kib", |row| row.used_high_bytes.map(kib)),
    ("collections", |row| row.collections.map(|all| all.count as f64)),
    ("pause_total_s", |row| row.collections.map(|all| seconds(all.pause_total_ns))),
    ("pause_max_s", |row| row.collections.map(|all| seconds(all.pause_max_ns))),
    ("reclaimed_kib", |row| row.collections.map(|all| kib(all.reclaimed_bytes))),
    ("collector_cpu_s", |row| row.collector_cpu_ns.map(seconds)),
];

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Cells of samples by repetition, and which programs ran otherwise than in lockstep where that was wanted. A figure that
/// failed or was not reported in a repetition is a gap there; what no row has gives no cell.
pub fn reading(experiment: &Experiment, step: &Step) -> Reading {
    let repetitions = experiment.repetitions();
    let mut reading = Reading { absent: absent(experiment), ..Reading::default() };
    for program in &experiment.programs {
        let cpu = cpu_seconds(experiment, &program.name, repetitions);
        reading.pairing.extend(cpu.notes.iter().map(|note| format!("{}: {note}", program.name)));
        for (side, of_stack) in Sides::of(experiment, &program.name).all.iter().zip(&cpu.stacks) {
            let cells = &mut reading.cells;
            if let Some(limit) = experiment.heap_limit(&program.name, side.stack) {
                let of_baseline = cpu.stacks.iter().find(|cpu| cpu.stack == experiment.baseline);
                if let Some(ratios) = of_baseline.and_then(|baseline| ratios(of_stack, baseline)) {
                    let manager = &limit.collector;
                    let mut writer = CellWriter { step: &step.id, program: &program.name, manager, cells };
                    writer.put(HEAP_CPU_RATIO, Some(limit.factor), Value::Samples(ratios));
                }
                continue;
            }
            let mut writer =
                CellWriter { step: &step.id, program: &program.name, manager: side.stack, cells };
            let mut put = |metric: &str, value: &dyn Fn(u32) -> Option<f64>| {
                // The system counts in microseconds; further digits would double the files of a published run.
                let rounded = |value: f64| (value * 1e6).round() / 1e6;
                let samples: Vec<Option<f64>> = (0..repetitions).map(|at| value(at).map(rounded)).collect();
                if samples.iter().any(Option::is_some) {
                    writer.put(metric, None, Value::Samples(samples));
                }
            };
            let sample = |samples: &[Option<f64>], repetition: u32| *samples.get(repetition as usize)?;
            put(AT_ONCE, &|repetition| sample(&of_stack.cpu_s, repetition));
            put(ALONE, &|repetition| sample(of_stack.alone_s.as_ref()?, repetition));
            put("wall_s", &|repetition| side.value_in(Metric::Wall, repetition));
            for (metric, take) in PLAIN {
                put(metric, &|repetition| take(side.row_in(side.by_itself(), repetition)?));
            }
            for name in side.own_names() {
                put(&format!("figure_{name}"), &|repetition| side.own_in(name, repetition));
            }
        }
    }
    reading.cells.extend(bounds(experiment, step));
    reading
}

/// CPU seconds of a stack over the baseline's, by repetition; `None` where no repetition has both.
fn ratios(of: &Seconds, baseline: &Seconds) -> Option<Vec<Option<f64>>> {
    let pairs = of.cpu_s.iter().zip(&baseline.cpu_s);
    let ratios: Vec<Option<f64>> = pairs.map(|(of, baseline)| Some((*of)? / (*baseline)?)).collect();
    ratios.iter().any(Option::is_some).then_some(ratios)
}

/// CPU seconds of stacks of which each run was killed at the time limit: at least what the shortest of them had taken,
/// start-up taken off. That such a program is slow is known, and the strongest evidence would be left out.
fn bounds(experiment: &Experiment, step: &Step) -> Vec<Cell> {
    let bound = |stack: &StackInfo| {
        let rows = timed_rows(experiment, stack);
        let killed = |row: &&Observation| matches!(row.outcome, Outcome::Timeout(_));
        if rows.is_empty() || !rows.iter().all(killed) {
            return None;
        }
        let sides = Sides::of(experiment, &stack.program);
        let start_up_s = sides.find(&stack.name).and_then(|side| side.startup_cpu_s()).unwrap_or_default();
        let least_s = rows.iter().map(|row| row.cpu_s() - start_up_s).reduce(f64::min)?;
        Some(Cell {
            step: step.id.clone(),
            program: stack.program.clone(),
            manager: stack.name.clone(),
            metric: AT_ONCE.into(),
            at: None,
            value: Value::AtLeast(least_s),
        })
        .filter(|_| least_s > 0.0)
    };
    // In a heap that is too small a run takes as long as it may.
    experiment.stacks.iter().filter(|stack| stack.heap.is_none()).filter_map(bound).collect()
}

/// A stack's runs, in lockstep and alone.
fn timed_rows<'a>(experiment: &'a Experiment, stack: &StackInfo) -> Vec<&'a Observation> {
    let of = |row: &&Observation| {
        matches!(row.phase, Phase::Timed | Phase::Alone)
            && row.program == stack.program
            && row.stack == stack.name
    };
    experiment.observations.iter().filter(of).collect()
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
    use super::super::testing::{run, step, value};
    use super::*;
    use crate::definition::StepKind;
    use heaptoll_experiment::heap_limit::HeapLimit;

    fn read(experiment: &Experiment) -> Reading {
        reading(experiment, &step(StepKind::Run))
    }

    fn cells(experiment: &Experiment) -> Vec<Cell> {
        read(experiment).cells
    }

    fn samples(cells: &[Cell], manager: &str, metric: &str) -> Vec<Option<f64>> {
        match value(cells, manager, metric, None) {
            Some(Value::Samples(samples)) => samples,
            other => panic!("{metric} of {manager}: {other:?}"),
        }
    }

    #[test]
    fn times_are_without_start_up_and_the_rest_as_it_is_by_repetition() {
        let cells = cells(&run());
        // 9.991 ms less 1.071 ms; 10.1 ms less 1.091 ms.
        assert_eq!(samples(&cells, "kingsley", "cpu_s"), [Some(0.00892), Some(0.009009)]);
        assert_eq!(samples(&cells, "bw16", "cpu_s"), [Some(0.013238), Some(0.012983)]);
        assert_eq!(samples(&cells, "kingsley", "wall_s"), [Some(0.007849), Some(0.016459)]);
        assert_eq!(samples(&cells, "bw16", "user_s"), [Some(0.011406), Some(0.014061)]);
        assert_eq!(samples(&cells, "kingsley", "peak_rss_kib"), [Some(1648.0), Some(1488.0)]);
        assert_eq!(samples(&cells, "bw16", "heap_high_kib"), [Some(384.0); 2]);
        assert_eq!(samples(&cells, "bw16", "collections"), [Some(66.0); 2]);
        assert_eq!(samples(&cells, "bw16", "pause_max_s"), [Some(0.002146), Some(0.001192)]);
        assert_eq!(samples(&cells, "kingsley", "collections"), [Some(0.0); 2]);
        assert_eq!(value(&cells, "kingsley", "used_high_kib", None), None, "it does not report");
        assert!(read(&run()).absent.is_empty());
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
        let cells = cells(&found);
        assert_eq!(samples(&cells, "bw16", "peak_rss_kib"), [None, Some(2024.0)]);
        assert_eq!(samples(&cells, "kingsley", "peak_rss_kib"), [Some(1648.0), Some(1488.0)]);
        let absent = read(&found).absent;
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
            value(&cells(&found), "bw16", "cpu_s", None)
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
        let cells = cells(&found);
        assert_eq!(samples(&cells, "bw16", "figure_longest_pause_ms"), [Some(3.5); 2]);
        assert_eq!(value(&cells, "kingsley", "figure_longest_pause_ms", None), None);
    }

    #[test]
    fn a_collector_in_a_fixed_heap_is_a_ratio_at_its_factor() {
        let mut found = run();
        let stack = found.stacks.iter_mut().find(|stack| stack.name == "bw16").expect("a stack");
        stack.heap = Some(HeapLimit::of("bw26", 1.5, 1 << 20));
        let cells = cells(&found);
        let Some(Value::Samples(ratios)) = value(&cells, "bw26", "heap_cpu_ratio", Some(1.5)) else {
            panic!("{cells:#?}")
        };
        // 13.238 ms over 8.92 ms.
        assert!(
            ratios.len() == 2 && ratios[0].is_some_and(|ratio| (ratio - 1.484).abs() < 0.001),
            "{ratios:?}"
        );
        assert!(cells.iter().all(|cell| cell.manager != "bw16"), "it is no manager of the step");
    }
}
