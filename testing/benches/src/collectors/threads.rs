//! Threads that allocate: how much more two do than one, and collectors compared with the allocators that are best at
//! it.

use heaptoll_experiment::comparison::Metric;

use super::document::Outputs;
use super::measured::{Measured, Plan, Source};
use crate::Error;
use crate::table::table;

/// One thread and two doing the same work in all, and a pair: one allocates and the other frees.
const ONE: &str = "larson:1-thread";
const TWO: &str = "larson";
const EXCHANGE: &str = "exchange";
/// Two threads cannot share one processor and show what a second brings.
const PLAN: Plan = Plan {
    sets: &[],
    added: &[],
    words: "-p larson:1-thread -p larson -p exchange --size demo -n 20 --pairing interleaved --seed 20261130 \
            -m mimalloc3 -m snmalloc -m tithe-explicit -m tithe -m tithe-collect -m bdw -m bdw-nofree",
};
const DASH: &str = "–";

/// The command line of `threads`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    outputs: Outputs,
}

/// Runs it. False when a program failed under a manager.
///
/// # Errors
/// Nothing could be measured, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let measured = options.source.measured(&PLAN)?;
    options.outputs.write("threads", &section(&measured))?;
    Ok(measured.not_well().is_empty())
}

/// Elapsed seconds of a manager on each of the programs, and CPU seconds on both forms of `larson`.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    one_s: Option<f64>,
    two_s: Option<f64>,
    exchange_s: Option<f64>,
    cpu_one_s: Option<f64>,
    cpu_two_s: Option<f64>,
}

impl Times {
    fn of(measured: &Measured, manager: &str) -> Times {
        let median = |program, metric| measured.median(program, manager, metric);
        Times {
            one_s: median(ONE, Metric::Wall),
            two_s: median(TWO, Metric::Wall),
            exchange_s: median(EXCHANGE, Metric::Wall),
            cpu_one_s: median(ONE, Metric::Cpu),
            cpu_two_s: median(TWO, Metric::Cpu),
        }
    }

    /// Two threads' throughput over one's.
    fn speed_up(self) -> Option<f64> {
        Some(self.one_s? / self.two_s?)
    }

    /// What two threads could do over one, by their CPU time, if nothing else wanted the processors: on a busy machine
    /// the elapsed time shows more about the other processes.
    fn speed_up_by_cpu(self) -> Option<f64> {
        Some(2.0 * self.cpu_one_s? / self.cpu_two_s?)
    }
}

/// Seconds of one of the programs.
type Seconds = fn(Times) -> Option<f64>;

/// How often as much a second one does as another.
fn throughput(ours: Times, theirs: Times, seconds: Seconds) -> Option<f64> {
    Some(seconds(theirs)? / seconds(ours)?)
}

fn section(measured: &Measured) -> String {
    let of = |manager: &str| Times::of(measured, manager);
    let base = of(&measured.experiment.baseline);
    let number = |value: Option<f64>| value.map_or(DASH.into(), |value| format!("{value:.2}"));
    let managers = [&[measured.experiment.baseline.as_str()][..], &measured.managers()].concat();
    let rows = managers.iter().map(|manager| {
        let times = of(manager);
        let figures = [
            times.one_s,
            times.two_s,
            times.speed_up(),
            times.speed_up_by_cpu(),
            throughput(times, base, |times| times.two_s),
            times.exchange_s,
            throughput(times, base, |times| times.exchange_s),
        ];
        std::iter::once((*manager).to_owned()).chain(figures.map(number)).collect()
    });
    let headings = [
        "manager",
        "larson, 1 thread, s",
        "2 threads, s",
        "2 over 1",
        "the same by CPU",
        "2 threads over glibc",
        "exchange, 2 threads, s",
        "over glibc",
    ];
    format!(
        "{} Elapsed seconds are medians less start-up, the work is the same with one thread and with two, and ratios are \
         of throughput. *By CPU* is what two threads could do on idle processors.\n\n{}\n{}{}",
        measured.heading(),
        table(&headings, 1, rows).markdown(),
        reached(&of),
        measured.outputs()
    )
}

/// The targets: two threads over one, the explicit mode over the better of two, the collecting mode over Boehm's.
fn reached(of: &dyn Fn(&str) -> Times) -> String {
    let mut rows = vec![];
    let mut line = |what: String, value: Option<f64>, limit: f64| {
        let Some(value) = value else { return };
        let verdict = if value >= limit {
            "pass".into()
        } else {
            format!("miss by {:.1} %", (1.0 - value / limit) * 100.0)
        };
        rows.push(vec![what, format!("{value:.2}"), format!("{limit:.2}"), verdict]);
    };
    for manager in ["tithe-explicit", "tithe", "tithe-collect"] {
        line(format!("{manager}: two threads over one (larson)"), of(manager).speed_up(), 1.8);
    }
    let programs: [(&str, Seconds); 2] = [(TWO, |times| times.two_s), (EXCHANGE, |times| times.exchange_s)];
    for (program, seconds) in programs {
        let better = ["mimalloc3", "snmalloc"]
            .into_iter()
            .filter_map(|name| throughput(of("tithe-explicit"), of(name), seconds))
            .min_by(f64::total_cmp);
        line(format!("tithe-explicit over the better of mimalloc3 and snmalloc ({program})"), better, 1.0);
        let collect = throughput(of("tithe-collect"), of("bdw-nofree"), seconds);
        line(format!("tithe-collect over bdw-nofree ({program})"), collect, 3.0);
    }
    table(&["target", "reached", "at least", "verdict"], 1, rows).markdown()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_held_against_the_better_of_two() {
        let of = |manager: &str| match manager {
            "tithe-explicit" => Times { one_s: Some(2.0), two_s: Some(1.0), ..Times::default() },
            "mimalloc3" => Times { two_s: Some(0.8), ..Times::default() },
            "snmalloc" => Times { two_s: Some(1.2), ..Times::default() },
            _ => Times::default(),
        };
        assert_eq!(of("tithe-explicit").speed_up(), Some(2.0));
        let text = reached(&of).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("(larson) | 2.00 | 1.80 | pass"), "{text}");
        assert!(text.contains("snmalloc (larson) | 0.80 | 1.00 | miss by 20.0 %"), "{text}");
    }
}
