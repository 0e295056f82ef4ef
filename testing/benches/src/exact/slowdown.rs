//! `slowdown`: user CPU of a program under the tracer over that of a plain run, compared with Valgrind's own tools.
//!
//! Runs of all ways are interleaved in random order, round by round, so that other work of the machine affects all of
//! them; a ratio is taken within a round. User CPU is that of the program's process, in which Valgrind and the tracer
//! work; that of heaptoll's decoding thread, on which the simulators run, is reported separately.

use heaptoll_catalog::Prepared;
use heaptoll_experiment::manager::Manager;
use heaptoll_launcher::Ended;
use heaptoll_reftrace_host::Options as TracerOptions;
use heaptoll_statistics::median;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::setup::{Choice, Setup, ValgrindTool};
use super::simulated::{self, SimulationSink};
use super::traced::{self, Null, Run};
use crate::Error;
use crate::installation::{machine_line, scratch};
use crate::table::table;

/// The command line of `slowdown`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    choice: Choice,
    /// Rounds
    #[arg(short, default_value_t = 3)]
    n: usize,
    /// Seed of the order
    #[arg(long, default_value_t = 1992)]
    seed: u64,
    /// Only the ways whose name contains this, and the plain run
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A way to run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Counts,
    References,
    Exact,
    Sampled,
    ValgrindTool(ValgrindTool),
}

/// The ways, with the targets for gawk.
const WAYS: [(Way, &str, Option<f64>); 7] = [
    (Way::Plain, "as it is", None),
    (Way::Counts, "tracer, counts only", Some(9.0)),
    (Way::References, "tracer, references to a null consumer", Some(13.0)),
    (Way::Sampled, "tracer, all simulators, sampled", Some(30.0)),
    (Way::Exact, "tracer, all simulators, exact", Some(100.0)),
    (Way::ValgrindTool(ValgrindTool::Cachegrind), "cachegrind, one geometry", None),
    (Way::ValgrindTool(ValgrindTool::Callgrind), "callgrind", None),
];
/// The program to which these targets apply.
const TARGET_OF: &str = "gawk";

/// CPU of one run, s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cost {
    /// The program's process, user.
    process: f64,
    /// heaptoll's thread, user and system.
    consumer: f64,
    /// From start to end.
    wall: f64,
}

/// Measures. Always true: the figures are information.
///
/// # Errors
/// A program fails, or a tool is missing.
pub fn run(options: &Options) -> Result<bool, Error> {
    let setup = Setup::open(options.choice.timeout)?;
    let managers = setup.installation.managers(&options.choice.managers, &["glibc"])?;
    let programs = setup.programs(&options.choice, &[TARGET_OF, "cfrac"])?;
    println!("{}; inputs: {}; {} rounds", machine_line(), options.choice.size, options.n);
    println!("Ratios to the program as it is in the same round: median (lowest-highest)\n");
    let wanted = |way: Way, name: &str| {
        way == Way::Plain || options.only.as_deref().is_none_or(|text| name.contains(text))
    };
    let ways: Vec<_> = WAYS.iter().filter(|(way, name, _)| wanted(*way, name)).collect();
    let mut dice = ChaCha8Rng::seed_from_u64(options.seed);
    for manager in &managers {
        for program in &programs {
            let mut rounds: Vec<Vec<Cost>> = Vec::new();
            for _ in 0..options.n {
                let mut order: Vec<usize> = (0..ways.len()).collect();
                order.shuffle(&mut dice);
                let mut costs = vec![Cost::default(); ways.len()];
                for at in order {
                    costs[at] = once(&setup, program, manager, ways[at].0)?;
                }
                rounds.push(costs);
            }
            let rows: Vec<Vec<String>> = ways
                .iter()
                .enumerate()
                .map(|(at, (_, name, target))| {
                    let target = target.filter(|_| program.name == TARGET_OF);
                    row(name, target, &rounds.iter().map(|costs| (costs[at], costs[0])).collect::<Vec<_>>())
                })
                .collect();
            println!("{} under {}", program.name, manager.name);
            let headings =
                ["run", "process CPU s", "over plain", "with the consumer", "wall over plain", "target"];
            println!("{}", table(&headings, 1, rows));
            println!();
        }
    }
    Ok(true)
}

/// A way's row: its costs with those of the plain run, round by round.
fn row(name: &str, target: Option<f64>, rounds: &[(Cost, Cost)]) -> Vec<String> {
    let spread = |of: &dyn Fn(&Cost) -> f64| {
        let mut ratios: Vec<f64> = rounds.iter().map(|(cost, plain)| of(cost) / of(plain)).collect();
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios.first().copied(), ratios.last().copied());
        (median(&ratios), low.unwrap_or(f64::NAN), high.unwrap_or(f64::NAN))
    };
    let shown = |(median, low, high): (f64, f64, f64)| format!("{median:.1} ({low:.1}-{high:.1})");
    let mut seconds: Vec<f64> = rounds.iter().map(|(cost, _)| cost.process).collect();
    seconds.sort_by(f64::total_cmp);
    let both = spread(&|cost| cost.process + cost.consumer);
    let verdict = target.map_or(String::new(), |limit| {
        // The target includes the consumer: without it no reference is decoded.
        format!("<= {limit:.0}: {}", if both.0 <= limit { "met" } else { "MISSED" })
    });
    vec![
        name.into(),
        format!("{:.2}", median(&seconds)),
        shown(spread(&|cost| cost.process)),
        shown(both),
        shown(spread(&|cost| cost.wall)),
        verdict,
    ]
}

fn once(setup: &Setup, program: &Prepared, manager: &Manager, way: Way) -> Result<Cost, Error> {
    let tracer_run = |references| Run {
        options: TracerOptions { references, ..TracerOptions::default() },
        ..Run::default()
    };
    let before = own_cpu();
    let finished = match way {
        Way::Plain | Way::ValgrindTool(_) => {
            let (tmp, out) = (scratch()?, scratch()?);
            let plain = setup.invocation(program, manager, tmp.path());
            let (invocation, by) = match way {
                Way::ValgrindTool(valgrind_tool) => {
                    let name = valgrind_tool.name();
                    let mut options = vec![format!("--{name}-out-file={}/%p", out.path().display())];
                    if valgrind_tool == ValgrindTool::Cachegrind {
                        // Fixed caches, not those of this machine: the same here and elsewhere.
                        options.extend(
                            ["--cache-sim=yes", "--D1=32768,8,64", "--LL=8388608,16,64"].map(String::from),
                        );
                    }
                    (setup.valgrind_tool(valgrind_tool, &options, &plain)?, name)
                }
                _ => (plain, "nothing"),
            };
            setup.run(program, &manager.name, by, &invocation)?
        }
        Way::Counts => {
            traced::trace(setup, program, manager, tracer_run(false), |_| Null::default())?.finished
        }
        Way::References => {
            traced::trace(setup, program, manager, tracer_run(true), |_| Null::default())?.finished
        }
        Way::Exact | Way::Sampled => {
            let empty = SimulationSink::new(&simulated::everything(way == Way::Sampled))?;
            traced::trace(setup, program, manager, tracer_run(true), |_| empty.clone())?.finished
        }
    };
    debug_assert_eq!(finished.ended, Ended::Exit(0));
    let consumer = match way {
        Way::Plain | Way::ValgrindTool(_) => 0.0,
        _ => own_cpu() - before,
    };
    let usage = finished.usage;
    Ok(Cost { process: usage.user_us as f64 / 1e6, consumer, wall: usage.wall_ns as f64 / 1e9 })
}

/// CPU of this thread so far, s.
pub fn own_cpu() -> f64 {
    // SAFETY: zero is a valid `timespec`; `clock_gettime` writes one, to `time`, and every Linux has this clock.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_within_its_round_and_the_consumer_counts() {
        let cost = |process, consumer| Cost { process, consumer, wall: process };
        // The machine was twice as slow in the second round.
        let rounds = [
            (cost(10.0, 2.0), cost(1.0, 0.0)),
            (cost(20.0, 4.0), cost(2.0, 0.0)),
            (cost(11.0, 2.0), cost(1.0, 0.0)),
        ];
        let cells = row("x", Some(11.5), &rounds);
        assert_eq!(cells[1..4], ["11.00", "10.0 (10.0-11.0)", "12.0 (12.0-13.0)"]);
        assert_eq!(cells[5], "<= 12: MISSED");
        assert_eq!(row("x", Some(13.0), &rounds)[5], "<= 13: met");
        assert_eq!(row("x", None, &rounds)[5], "");
    }

    #[test]
    fn the_own_clock_runs() {
        let before = own_cpu();
        assert!((0..3_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)) < u64::MAX);
        assert!(own_cpu() > before);
    }
}
