//! What is wanted, as a number: the lower the better.

use heaptoll_experiment::comparison::{Comparison, Metric, Row};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_statistics::geometric_mean;
use heaptoll_units::size_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::alone::cpu_alone;
use super::servers::Served;

/// What is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preference {
    /// Little CPU time: ten per cent of memory are worth about one of it.
    Time,
    /// Little memory: ten per cent of CPU time are worth about one of it.
    Memory,
    /// Both alike.
    #[default]
    Balance,
    /// Of a server, few slow requests: the 99th percentile counts nine times as much as both others together.
    P99,
    /// Of a server, little memory once it is idle after its load: ten per cent of CPU time are worth about one of it.
    Idle,
}

/// How much the logarithm of each ratio to the baseline counts; 1 together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Weights {
    pub cpu: f64,
    pub memory: f64,
    pub p99: f64,
    pub idle: f64,
}

impl Preference {
    /// The name in options and sentences.
    pub fn name(self) -> &'static str {
        match self {
            Preference::Time => "time",
            Preference::Memory => "memory",
            Preference::Balance => "balance",
            Preference::P99 => "p99",
            Preference::Idle => "idle",
        }
    }

    /// The logarithm of a mean of ratios to the baseline, weighted as is wanted; 0 for the baseline itself, and infinite
    /// where a figure that counts is missing.
    pub fn score(self, cpu: f64, memory: f64, served: &Served) -> f64 {
        let weights = self.weights();
        let of = |weight: f64, ratio: Option<f64>| match weight {
            0.0 => 0.0,
            weight => ratio.map_or(f64::INFINITY, |ratio| weight * ratio.ln()),
        };
        of(weights.cpu, Some(cpu))
            + of(weights.memory, Some(memory))
            + of(weights.p99, served.p99_ratio)
            + of(weights.idle, served.idle_ratio)
    }

    pub(super) fn weights(self) -> Weights {
        let of = |cpu, memory| Weights { cpu, memory, ..Weights::default() };
        match self {
            Preference::Time => of(0.9, 0.1),
            Preference::Memory => of(0.1, 0.9),
            Preference::Balance => of(0.5, 0.5),
            Preference::P99 => Weights { p99: 0.9, ..of(0.05, 0.05) },
            Preference::Idle => Weights { idle: 0.9, ..of(0.1, 0.0) },
        }
    }
}

/// What a candidate may take at most.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Peak resident memory, bytes.
    pub memory_bytes: Option<u64>,
    /// The 99th percentile of requests, ms.
    pub p99_ms: Option<f64>,
}

impl Limits {
    /// Which of them these figures break, as the reason to leave a candidate out.
    pub(super) fn broken(self, peak_bytes: f64, served: &Served) -> Option<String> {
        if let Some(limit) = self.memory_bytes.filter(|limit| peak_bytes > *limit as f64) {
            return Some(format!("takes more than {}", size_text(limit)));
        }
        let slow = |limit: &f64| served.p99_ms.is_some_and(|p99| p99 > *limit);
        self.p99_ms.filter(slow).map(|limit| format!("its p99 latency exceeds {limit} ms"))
    }
}

/// A ratio to the baseline, over all programs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    /// Its geometric mean.
    pub mean: f64,
    /// The score at the lower ends of its intervals, or at the least of few repetitions.
    pub least: f64,
}

/// What a stack had, over all programs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// CPU time.
    pub cpu: Ratio,
    /// Peak resident memory.
    pub memory: Ratio,
    /// The largest median of peak resident memory of a program, bytes.
    pub peak_bytes: f64,
    /// Fewest good repetitions on a program.
    pub repetitions: u32,
}

/// Runs alone with less CPU time by this factor than those at once count in their place, however few there are.
const LESS_ALONE: f64 = 1.25;

/// What a stack had in an experiment; or why it is no candidate.
pub(super) fn measured(
    stack: &str,
    experiment: &Experiment,
    comparison: &Comparison,
) -> Result<Measured, String> {
    let (mut cpu, mut memory, mut peak_bytes) = (Vec::new(), Vec::new(), 0.0_f64);
    let mut repetitions = u32::MAX;
    for table in &comparison.tables {
        let find = |name: &str| table.rows.iter().find(|row| row.stack == name);
        let row = find(stack).ok_or_else(|| "does not work here".to_owned())?;
        if let Some(mark) = row.marks.first() {
            return Err(format!("{} ({})", died(mark), table.program));
        }
        let base = find(&comparison.baseline);
        cpu.push(ratio(row, base, Metric::Cpu)?);
        memory.push(ratio(row, base, Metric::PeakRss)?);
        repetitions = repetitions.min(row.good);
        peak_bytes =
            peak_bytes.max(row.figures.get(&Metric::PeakRss).map_or(0.0, |figure| figure.median * 1024.0));
    }
    let mut cpu = over_programs(&cpu);
    if let Some(alone) = cpu_alone(experiment, stack) {
        if alone.high * LESS_ALONE < cpu.least {
            cpu.mean = alone.ratio;
        }
        if alone.low * LESS_ALONE < cpu.least {
            cpu.least = alone.low;
        }
    }
    Ok(Measured { cpu, memory: over_programs(&memory), peak_bytes, repetitions })
}

fn over_programs(ratios: &[Ratio]) -> Ratio {
    let mean = |of: fn(&Ratio) -> f64| geometric_mean(ratios.iter().map(of)).unwrap_or(1.0);
    Ratio { mean: mean(|ratio| ratio.mean), least: mean(|ratio| ratio.least) }
}

/// A row's mark, where a server has ended by itself as that it died: `died: was killed by signal 6 while it was loaded`.
fn died(mark: &str) -> String {
    let ended = mark.split_once("x server: ").map(|(_, text)| text);
    let by_itself = |text: &&str| text.starts_with("was killed") || text.starts_with("ended with");
    ended.filter(by_itself).map_or_else(|| mark.to_owned(), |text| format!("died: {text}"))
}

/// The mean of paired ratios; of a single pair, which has no interval, that of the two.
fn ratio(row: &Row, base: Option<&Row>, metric: Metric) -> Result<Ratio, String> {
    let own = row.figures.get(&metric);
    let of_pairs = own.and_then(|figure| figure.ratio.as_ref());
    let of_pairs = of_pairs.map(|found| Ratio { mean: found.ratio, least: found.low });
    let of_one = || {
        let one = own?.median / base?.figures.get(&metric)?.median;
        Some(Ratio { mean: one, least: one })
    };
    let ratio = of_pairs.or_else(of_one).filter(|ratio| ratio.mean.is_finite() && ratio.least > 0.0);
    ratio.ok_or_else(|| "could not be compared".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::compare::compare;
    use heaptoll_experiment::experiment::Pairing;
    use heaptoll_experiment::observation::{Observation, Phase};
    use heaptoll_experiment::testing::programs::{experiment, row};

    /// Before, the search let a manager with huge pages go: at once with thirty others it took twice the CPU time of the
    /// baseline, and alone a third of it.
    #[test]
    fn runs_alone_count_in_the_search_where_company_makes_a_stack_slow() {
        let mut made = experiment(&["prog"], &["glibc", "lonely", "disturbed", "usual"].map(String::from), 2);
        made.settings.pairing = Pairing::Lockstep;
        let rows = [
            ("glibc", 1.0, [1.0, 1.0]),
            ("lonely", 2.0, [0.4, 0.4]),
            ("disturbed", 2.0, [0.4, 1.9]),
            ("usual", 0.9, [0.8, 0.8]),
        ];
        for (stack, at_once, alone) in rows {
            for (repetition, alone) in (0..).zip(alone) {
                made.observations.push(row("prog", stack, repetition, at_once, 1000));
                let alone = row("prog", stack, repetition, alone, 1000);
                made.observations.push(Observation { phase: Phase::Alone, ..alone });
            }
        }
        let cpu = |stack: &str| {
            let cpu = measured(stack, &made, &compare(&made)).expect("it works").cpu;
            [cpu.mean, cpu.least].map(|ratio| (ratio * 100.0).round())
        };
        assert_eq!([cpu("lonely"), cpu("disturbed")], [[40.0, 40.0], [200.0, 40.0]]);
        assert_eq!(cpu("usual"), [90.0, 90.0], "noise of few runs alone");
    }

    #[test]
    fn a_preference_weighs_time_and_memory() {
        // 35 % less memory for 4 % more CPU.
        let (cpu, memory) = (1.04, 0.65);
        let score =
            |preference: Preference, cpu: f64, memory: f64| preference.score(cpu, memory, &Served::default());
        assert!(
            score(Preference::Memory, cpu, memory) < 0.0 && score(Preference::Balance, cpu, memory) < 0.0
        );
        assert!(
            score(Preference::Time, 1.10, 0.65) > 0.0,
            "ten per cent of time are worth more than a third of memory"
        );
        assert!(score(Preference::Time, 1.01, 0.5) < 0.0);
        for preference in [Preference::Time, Preference::Memory, Preference::Balance] {
            assert!(score(preference, 1.0, 1.0).abs() < 1e-12);
            assert!(score(preference, 0.9, 0.9) < score(preference, 1.0, 1.0));
        }
    }

    #[test]
    fn a_server_is_weighed_by_its_requests_and_its_idle_memory() {
        let served = Served { p99_ratio: Some(0.8), idle_ratio: Some(0.5), ..Served::default() };
        assert!(Preference::P99.score(1.2, 1.2, &served) < 0.0);
        assert!(Preference::Idle.score(1.2, 9.0, &served) < 0.0, "its peak does not count");
        assert_eq!(Preference::P99.score(0.5, 0.5, &Served::default()), f64::INFINITY);
    }

    #[test]
    fn limits_take_candidates_out() {
        let limits = Limits { memory_bytes: Some(1 << 20), p99_ms: Some(2.0) };
        let served = |p99_ms| Served { p99_ms, ..Served::default() };
        assert_eq!(limits.broken(1e6, &served(Some(1.9))), None);
        assert!(limits.broken(1.1e6, &served(None)).is_some_and(|why| why.contains("1M")));
        assert!(limits.broken(1e6, &served(Some(2.1))).is_some_and(|why| why.contains("2 ms")));
    }

    #[test]
    fn a_server_that_ends_by_itself_died() {
        assert_eq!(
            died("2x server: was killed by signal 6 while it was loaded"),
            "died: was killed by signal 6 while it was loaded"
        );
        assert_eq!(
            died("1x server: did not end within 15 s of SIGTERM"),
            "1x server: did not end within 15 s of SIGTERM"
        );
        assert_eq!(died("2x killed by signal 11"), "2x killed by signal 11");
    }
}
