//! `heaptoll replay`: what other managers do with exactly this sequence of calls.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_replay::error::ReplayError;
use heaptoll_replay::findings::{Findings, findings};
use heaptoll_replay::job::Touch;
use heaptoll_replay::program::Order;
use heaptoll_replay::start::Stack;
use heaptoll_replay::study::{Progress, Request, study};
use indicatif::ProgressBar;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::documents::DocumentOutputs;
use crate::duration::positive_seconds;
use crate::exit;
use crate::lines::Lines;
use crate::memory::MemoryArguments;
use crate::{progress_bar, terminal};
use heaptoll_experiments::clock;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::preparation::estimate::Estimate;
use heaptoll_experiments::{preparation::baseline, preparation::preflights, preparation::stand_ins};

mod document;
mod sections;
mod verdict;

/// Order of a trace's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// As recorded: one call at a time, whichever thread makes it
    Exact,
    /// Each thread as fast as it can; only an object's own calls keep their order
    PerThread,
}

/// Accesses to blocks in addition to the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TouchArg {
    /// Nothing
    None,
    /// Each is written once in full when it is allocated
    Write,
    /// And read in full, and compared, before it is freed
    All,
}

/// Replay a trace under other managers: what would each have done with exactly these calls?
///
/// A fresh process with the manager preloaded makes the calls of the trace and nothing else. CPU, the latency of single
/// calls, and memory are taken in runs of their own, all of them interleaved in random order; what the driver itself
/// costs is measured with a manager that does nothing, and taken off. Where the trace was recorded under a manager that
/// is replayed, the two are compared.
///
/// A trace has no pointers, so it does not show what a collector would have to mark: collectors get no figures of time.
///
/// Exit status: 0 all well; 1 a manager failed, or an output file could not be written; 2 it is no trace, or cannot be
/// replayed; 130 interrupted (what was measured is shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll replay gawk.heaptoll\n  \
    heaptoll replay gawk.heaptoll -m mimalloc3 -m ./libmine.so -n 10 --html gawk.html\n  \
    heaptoll replay server.heaptoll -m jemalloc --loop 100     (does memory drift up?)\n  \
    heaptoll replay server.heaptoll --scale 8                  (eight copies at once)\n  \
    heaptoll replay threads.heaptoll --order exact --touch all (as recorded, contents checked)")]
pub struct Arguments {
    /// The trace that `heaptoll record` made
    trace: PathBuf,
    /// A manager by name (`heaptoll managers`) or path, or a group of them: modern, historic, collectors, all; with
    /// layers in front (`quarantine=2M/mimalloc`) and options after the name (`tithe,heap=32M`) where wanted; may be
    /// given several times [default: modern]
    #[arg(short, long, value_name = "MANAGER")]
    manager: Vec<String>,
    /// The manager that ratios are taken to; added to the list when it is not in it
    #[arg(long, value_name = "MANAGER", default_value = baseline::DEFAULT)]
    baseline: String,
    /// Order of threads [default: per-thread where time is measured, exact where memory is]
    #[arg(long, value_enum, value_name = "ORDER")]
    order: Option<OrderArg>,
    /// What is done with blocks [default: none where time is measured, write where memory is]
    #[arg(long, value_enum, value_name = "HOW")]
    touch: Option<TouchArg>,
    /// Replay the whole trace so many times in the same process, for what happens in the long run
    #[arg(long = "loop", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repetitions: u32,
    /// Replay so many copies of the trace at once, interleaved
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    scale: u32,
    /// Runs under each manager; below 6 no difference can be claimed
    #[arg(short = 'n', long = "repetitions", value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Seed of the order of runs [default: from the clock, printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Seconds after which a run is killed and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true, value_parser = positive_seconds)]
    timeout: f64,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    let places = Places::find()?;
    // It is read once for each order of threads and copy.
    if arguments.trace.metadata().is_ok_and(|about| !about.is_file()) || arguments.trace.as_os_str() == "-" {
        return Err(Failure::Usage(format!(
            "{}: a replay reads its trace several times, so it must be a file",
            arguments.trace.display()
        )));
    }
    let interrupt = watch()?;
    let managers = choose(arguments, &places)?;
    let names = preflights::row_names(&managers);
    let seed = arguments.seed.unwrap_or_else(clock::seed);
    let request = Request {
        trace: arguments.trace.clone(),
        memory_limit_bytes: arguments.memory.each(0).limit_bytes,
        stacks: managers
            .iter()
            .zip(&names)
            .map(|(manager, name)| Stack {
                name: name.clone(),
                preload: manager.preload(&places),
                environment: manager.environment.clone(),
            })
            .collect(),
        order: arguments.order.map(|word| match word {
            OrderArg::Exact => Order::Exact,
            OrderArg::PerThread => Order::PerThread,
        }),
        touch: arguments.touch.map(|word| match word {
            TouchArg::None => Touch::None,
            TouchArg::Write => Touch::Write,
            TouchArg::All => Touch::All,
        }),
        runs: arguments.runs,
        repetitions: arguments.repetitions,
        copies: arguments.scale,
        seed,
        timeout: Duration::from_secs_f64(arguments.timeout),
        driver: places.replay_driver(),
        null: places.null_manager(),
    };
    let mut bar = Bar::new();
    let lines = Lines::of(&bar.bar);
    let studied = study(&request, &interrupt, &mut bar);
    bar.bar.finish_and_clear();
    drop(lines);
    let studied = studied.map_err(wrapped)?;
    let found = findings(&request, &studied);
    if !studied.complete && found.rows.iter().all(|row| row.time.is_none() && row.memory.is_none()) {
        return Err(Failure::Interrupted);
    }
    let document = document::document(&found, &managers);
    let code = arguments.outputs.deliver(&document, "heaptoll-replay/1", &found)?;
    let known = manager::known(&places)?;
    let named_managers = manager::names_of(&known, arguments.manager.iter().chain([&arguments.baseline]));
    Ok(status(&named_managers, &found, code))
}

/// The exit status: a manager that the user named counts when it fails or is refused, a member of a group only when it
/// fails.
fn status(named_managers: &[String], found: &Findings, code: u8) -> u8 {
    if !found.complete {
        terminal::note("interrupted: the tables hold the runs that were made until then");
        return exit::INTERRUPTED;
    }
    let named = |name: &String| named_managers.contains(name);
    let trouble = found.rows.iter().any(|row| {
        row.refused.is_some() && named(&row.name)
            || !row.failures.is_empty() && (row.collector.is_none() || named(&row.name))
    });
    if trouble { exit::TROUBLE } else { code }
}

fn wrapped(error: ReplayError) -> Failure {
    match error {
        ReplayError::OwnCost(_) | ReplayError::System { .. } => Failure::Trouble(Box::new(error)),
        _ => Failure::Refused(Box::new(error)),
    }
}

/// Ctrl-C ends the present run and shows what there is; a second one exits at once.
fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let code = i32::from(exit::INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&interrupted))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .map_err(exit::cannot_watch)?;
    }
    Ok(interrupted)
}

/// The managers, the baseline first.
fn choose(arguments: &Arguments, places: &Places) -> Result<Vec<Manager>, Failure> {
    let known = manager::known(places)?;
    stand_ins::note(
        &known,
        arguments.manager.iter().chain([&arguments.baseline]),
        &crate::messages::TerminalMessages::default(),
    );
    Ok(manager::choose_with_baseline(&known, &arguments.manager, &arguments.baseline)?)
}

/// A bar on standard error; hidden when that is no terminal.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    fn announce(&self, estimate: &Estimate) {
        if let Some(words) = estimate.sentence() {
            self.bar.suspend(|| terminal::note(&words));
        }
    }

    fn new() -> Bar {
        Bar { bar: progress_bar::of_steps(0) }
    }
}

impl Progress for Bar {
    fn message(&mut self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    fn begins(&mut self, runs: usize, calls: u64, one: Duration) {
        let estimate = Estimate {
            what: format!("{runs} runs to make, of {calls} calls each"),
            seconds: runs as f64 * one.as_secs_f64(),
            at_least: true,
            provided: "a run takes what one under a manager that does nothing took".into(),
        };
        self.announce(&estimate);
    }

    fn first_round(&mut self, took: Duration, done: usize, left: usize) {
        let estimate = Estimate {
            what: format!("{left} more runs to make"),
            seconds: left as f64 * took.as_secs_f64() / done.max(1) as f64,
            at_least: false,
            provided: "they take what those of the first round took".into(),
        };
        self.announce(&estimate);
    }

    fn ran(&mut self, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
    }
}
