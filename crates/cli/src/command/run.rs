//! `heaptoll run`: the main job.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::disturbance::Since;
use heaptoll_experiment::experiment::{Experiment, Pairing, StackInfo};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::machine;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::{self, Ending, Progress, RunContext};
use heaptoll_experiment::store::Store;
use heaptoll_report::terminal::render;

use crate::duration::{duration, slice};
use crate::extras::ExtraTables;
use crate::failure::{self, Failure};
use crate::load;
use crate::memory::bytes;
use crate::outputs::Outputs;
use crate::pairing;
use crate::progress::Bar;
use crate::terminal;
use crate::workload_args::WorkloadArgs;

pub mod begin;
mod exact;
mod goal;
pub mod resume;
mod sight;
mod stages;

use begin::begin;
use resume::{go_where_it_began, resume};

/// Transparent huge pages of the measured processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThpArg {
    /// Everywhere (only where the system's own setting is `always`)
    Always,
    /// Where the program or the manager requests them (not where the system's own setting is `never`)
    Madvise,
    /// Nowhere
    Never,
}

impl ThpArg {
    fn as_str(self) -> &'static str {
        match self {
            ThpArg::Always => "always",
            ThpArg::Madvise => "madvise",
            ThpArg::Never => "never",
        }
    }

    /// Whether a process can have this where the system is set to `system`: it can only have less.
    fn is_allowed_where(self, system: &str) -> bool {
        match self {
            ThpArg::Always => system == "always",
            ThpArg::Madvise => system != "never",
            ThpArg::Never => true,
        }
    }
}

/// How runs are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PairingArg {
    /// All managers at once on one processor: differences of one percent on a noisy machine
    Lockstep,
    /// One after the other in random order
    Interleaved,
}

impl From<PairingArg> for Pairing {
    fn from(pairing: PairingArg) -> Pairing {
        match pairing {
            PairingArg::Lockstep => Pairing::Lockstep,
            PairingArg::Interleaved => Pairing::Interleaved,
        }
    }
}

/// Run a program under several managers and compare them.
///
/// Every repetition runs the program under every manager, at once on one processor where that is possible, else in a
/// fresh random order; ratios are paired within a repetition. A difference is claimed only when its interval, corrected
/// for the number of comparisons in the table, excludes 1. Each row is stored as soon as it is measured: Ctrl-C loses
/// nothing, and --resume goes on.
///
/// After the first five repetitions a line states which CPU differences this machine will show in the time that is
/// left. Under each table notes show what else the machine did meanwhile: steal, interrupts, other work.
///
/// Exit status: 0 all well; 1 a manager failed or gave wrong output, what was named was refused, or an output file
/// could not be written; 2 the request cannot be carried out; 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll run -- gawk -f report.awk data.txt\n  \
    heaptoll run -m glibc -m ./libmine.so -n 20 --html out.html -- ./server --selftest\n  \
    heaptoll run --program cfrac --program lua --size demo\n  \
    heaptoll run --exact -m mimalloc3 --program cfrac             (is it instructions, or memory?)\n  \
    heaptoll run -m quarantine=1B/mimalloc -m quarantine=2M/mimalloc -- ./prog     (what do delayed frees cost?)\n  \
    heaptoll run -m glibc -m glibc -- ./prog        (A/A: how large is this machine's noise?)\n  \
    heaptoll run --serve 'redis-server --port 0 --unixsocket {tmp}/s' --ready '(?i)ready to accept connections' \\\n    \
    --load 'redis-benchmark -s {tmp}/s -q -n 200000'")]
pub struct Arguments {
    /// A manager by name (`heaptoll managers`) or path, or a group of them: modern, historic, collectors,
    /// all; with layers in front (`quarantine=2M/mimalloc`) and options after the name (`tithe,heap=32M`) where wanted;
    /// may be given several times [default: modern]
    #[arg(short, long, value_name = "MANAGER")]
    manager: Vec<String>,
    /// The manager that ratios are taken to; added to the list when it is not in it
    #[arg(long, value_name = "MANAGER", default_value = DEFAULT_BASELINE)]
    baseline: String,
    /// Timed repetitions; below 6 no difference can be claimed [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: Option<u32>,
    /// Repeat each program until its CPU intervals have at most this half-width, such as 1%; 8 repetitions at
    /// least, and 400 or the time of --budget at most
    #[arg(long, value_name = "P", conflicts_with = "repetitions", value_parser = goal::precision)]
    precision: Option<f64>,
    /// Measure for so long, such as 5m: programs with narrow enough intervals (--precision) end earlier
    #[arg(long, value_name = "TIME", conflicts_with = "repetitions", value_parser = duration)]
    budget: Option<f64>,
    /// Repetitions before the timed ones, not compared; the first is watched and gives memory over time
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    warmup: u32,
    /// Seed of the order and of every other random choice [default: from the clock, printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Seconds after which an invocation is killed and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true, value_parser = positive_seconds)]
    timeout: f64,
    /// Exit status with which the program ends when all is well
    #[arg(long, value_name = "STATUS", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255))]
    expect_status: i32,
    /// How runs are paired: `lockstep` runs all managers at once on one processor, wherever the program allows it and
    /// with the reason in the table where not; `interleaved` one after the other
    #[arg(long, value_enum, value_name = "HOW", default_value = "lockstep")]
    pairing: PairingArg,
    /// Time slice of managers in lockstep, from .1ms to 100ms, on Linux 6.12 and later [default: the kernel's own]
    #[arg(long, value_name = "TIME", value_parser = slice)]
    slice: Option<f64>,
    /// Memory that managers in lockstep may take together; where all of them would take more they run in turns, fewer at
    /// once with the baseline in each block, or, where not even two may, one after the other [default: half of what is
    /// available]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory_at_once: Option<u64>,
    /// Give each run a copy of the current folder to run in (at most 1 GiB): a program that writes there may run at
    /// once with others, and finds nothing of an earlier run
    #[arg(long, conflicts_with = "serve")]
    working_copy: bool,
    /// Afterwards run each program once more under each manager and a tracer (some 60 times slower), and show exact
    /// ratios with the measured one: instructions, misses of this machine's data caches, pages. Needs Valgrind
    #[arg(long)]
    exact: bool,
    /// Transparent huge pages of the measured processes [default: as the system has them]
    #[arg(long, value_enum, value_name = "WHEN")]
    thp: Option<ThpArg>,
    /// File that keeps the experiment [default: a new one in $XDG_STATE_HOME/heaptoll]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    db: Option<PathBuf>,
    /// Go on with an experiment that was stopped; a larger -n extends it
    #[arg(long, value_name = "DB", conflicts_with_all = FIXED_AT_THE_BEGINNING)]
    resume: Option<PathBuf>,
    #[command(flatten)]
    extras: ExtraTables,
    #[command(flatten)]
    outputs: Outputs,
    #[command(flatten)]
    workload: WorkloadArgs,
}

/// Options that are fixed when an experiment begins: with `--resume` they are refused, not ignored.
const FIXED_AT_THE_BEGINNING: [&str; 26] = [
    "memory_at_once",
    "working_copy",
    "slice",
    "command",
    "program",
    "all",
    "size",
    "quick",
    "catalog",
    "stdin",
    "serve",
    "load",
    "ready",
    "figures",
    "stop",
    "db",
    "manager",
    "baseline",
    "seed",
    "warmup",
    "timeout",
    "expect_status",
    "thp",
    "pairing",
    "precision",
    "budget",
];
/// The manager that ratios are taken to when none is named.
pub const DEFAULT_BASELINE: &str = "glibc";
/// Timed repetitions by default.
const REPETITIONS: u32 = 10;

/// A time limit from an option, s.
pub fn positive_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("give a number of seconds above 0".into()),
    }
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(mut arguments: Arguments) -> Result<u8, Failure> {
    let places = Places::find()?;
    arguments.outputs.check()?;
    let interrupt = watch_for_interrupt()?;
    // What cannot be counted is refused before anything is measured.
    let exact_tracer = if arguments.exact { Some(exact::tracer(&places)?) } else { None };
    let (mut store, mut experiment) = match &arguments.resume {
        Some(path) => {
            let resumed = resume(path, arguments.repetitions)?;
            arguments.outputs.make_absolute();
            go_where_it_began(&resumed.1)?;
            resumed
        }
        None => begin(&arguments, &places, &interrupt)?,
    };
    let tracer = match exact_tracer {
        None if experiment.settings.exact => Some(exact::tracer(&places)?),
        other => other,
    };
    if tracer.is_some() {
        exact::add(&mut experiment, &store)?;
    }
    terminal::note(&format!("every row is kept in {}", store.path().display()));

    let mut ended: Result<Ending, Failure> =
        goal::measure(&mut experiment, &mut store, &places, &interrupt).map_err(Failure::from);
    if let (Ok(Ending::Complete), Some(tracer)) = (&ended, &tracer) {
        ended = exact::count(&mut experiment, &store, &places, tracer, &interrupt);
    }
    let known = manager::known(&places)?;
    show(arguments, &mut experiment, &store, &known, ended)
}

/// Makes the invocations that an experiment still lacks, under a progress bar, and stores each row.
///
/// # Errors
/// See [`runner::RunError`].
pub fn measure(
    experiment: &mut Experiment,
    store: &mut Store,
    places: &Places,
    interrupt: &Interrupt,
) -> Result<Ending, runner::RunError> {
    measure_unless(experiment, store, places, interrupt, &|_| None).0
}

/// Why the rows after this one would be useless, if they would.
pub type StopReason<'a> = &'a dyn Fn(&Observation) -> Option<String>;

/// [`measure`], which ends early when a row of the only program shows that all others would be useless. The second part
/// is then the reason.
pub fn measure_unless(
    experiment: &mut Experiment,
    store: &mut Store,
    places: &Places,
    interrupt: &Interrupt,
    stop_reason: StopReason,
) -> (Result<Ending, runner::RunError>, Option<String>) {
    if let Some(text) = load::at_the_beginning(&machine::read()) {
        terminal::warning(&text);
    }
    let since = Since::now();
    let measured = lacking(experiment, store, places, interrupt, stop_reason);
    let found = since.and_then(|since| since.disturbance(None));
    // Not the cores of the machine's description, of which a limit of CPU time takes some off.
    let processors = pairing::Machine::now().processors;
    for text in found.map_or(vec![], |found| load::meanwhile(&found, processors)) {
        terminal::warning(&text);
    }
    measured
}

/// Makes the invocations that an experiment lacks by now, without a warning about the machine.
fn lacking(
    experiment: &mut Experiment,
    store: &mut Store,
    places: &Places,
    interrupt: &Interrupt,
    stop_reason: StopReason,
) -> (Result<Ending, runner::RunError>, Option<String>) {
    let bench = RunContext {
        launcher: places.launcher(),
        start_layer: places.start_layer(),
        interrupt: interrupt.clone(),
    };
    let bar = Bar::new(&stages::planned(experiment), experiment);
    let stop_reason = (experiment.programs.len() == 1).then_some(stop_reason);
    let mut watched = Watched { bar, stop_reason, interrupt, why: None };
    let ended = stages::execute(experiment, store, &bench, &mut watched);
    watched.bar.clear();
    (ended, watched.why)
}

/// Whether each stack has start-up runs: those of programs that are no servers have.
fn starts(experiment: &Experiment) -> Vec<bool> {
    let starts = |stack: &StackInfo| {
        experiment.programs.iter().any(|program| program.name == stack.program && program.serve.is_none())
    };
    experiment.stacks.iter().map(starts).collect()
}

/// A bar that cancels the rest when it would be useless.
struct Watched<'a> {
    bar: Bar,
    stop_reason: Option<StopReason<'a>>,
    interrupt: &'a Interrupt,
    why: Option<String>,
}

impl Progress for Watched<'_> {
    fn begins(&mut self, cell: &Cell, stack: &StackInfo) {
        self.bar.begins(cell, stack);
    }

    fn ended(&mut self, cell: &Cell, row: Option<&Observation>) {
        self.bar.ended(cell, row);
        if let (Some(row), Some(stop_reason), None) = (row, self.stop_reason, &self.why) {
            self.why = stop_reason(row);
            if self.why.is_some() {
                self.interrupt.set();
            }
        }
    }
}

/// Prints and writes whatever there is, and reports how it ended.
fn show(
    arguments: Arguments,
    experiment: &mut Experiment,
    store: &Store,
    known: &[Manager],
    ended: Result<Ending, Failure>,
) -> Result<u8, Failure> {
    judge_outputs(experiment);
    let comparison = compare(experiment);
    let measured = comparison.tables.iter().any(|table| table.rows.iter().any(|row| row.good > 0));
    let mut code = 0;
    let mut printed = Ok(());
    if measured || ended.is_ok() {
        printed =
            terminal::print(&render(experiment, &comparison, &terminal::style(), (&arguments.extras).into()));
        // A full standard output is no reason to lose the files.
        if !arguments.outputs.write(experiment, &comparison) {
            code = failure::TROUBLE;
        }
    }
    let bad = comparison.tables.iter().flat_map(|table| &table.rows).any(|row| !row.marks.is_empty());
    if bad || refused_what_was_named(experiment, known) {
        code = failure::TROUBLE;
    }
    let resume = format!("heaptoll run --resume {}", store.path().display());
    let ended = ended?;
    printed?;
    match ended {
        Ending::Complete => {
            if let Some(advice) = runner::advice_where_the_baseline_failed(experiment) {
                terminal::note(&advice);
            }
            terminal::note(&format!("again, or in other forms: heaptoll report {}", store.path().display()));
            Ok(code)
        }
        Ending::Interrupted => {
            terminal::note(&format!("interrupted; go on with: {resume}"));
            Ok(failure::INTERRUPTED)
        }
    }
}

/// Whether a program or a manager that the user named was refused; those of the default set and of `--all` are tried,
/// not requested. The experiment stores its command, so that a resumed run has the same exit status as the whole run.
fn refused_what_was_named(experiment: &Experiment, known: &[Manager]) -> bool {
    let Ok(crate::Cli { command: crate::Command::Run(arguments) }) =
        crate::Cli::try_parse_from(&experiment.settings.repeat_command)
    else {
        return false;
    };
    let baseline = (arguments.baseline != DEFAULT_BASELINE).then_some(&arguments.baseline);
    let named = manager::names_of(known, arguments.manager.iter().chain(baseline));
    // The second of two that are alike is called NAME#2.
    let manager_named = |stack: &str| {
        let mut rests = named.iter().filter_map(|name| stack.strip_prefix(name.as_str()));
        rests.any(|rest| rest.is_empty() || rest.starts_with('#'))
    };
    let program_left_out = |name: &String| {
        arguments.workload.program.contains(name)
            && experiment.programs.iter().all(|program| program.name != *name)
    };
    experiment.refused.iter().any(|(program, stack, _)| manager_named(stack) || program_left_out(program))
}

/// An interrupt that Ctrl-C and its like set.
///
/// # Errors
/// Signals cannot be caught.
pub fn watch_for_interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let mut signals = vec![libc::SIGINT, libc::SIGTERM];
    if !hangup_is_ignored() {
        signals.push(libc::SIGHUP);
    }
    let mut signals = signal_hook::iterator::Signals::new(signals).map_err(Failure::Signals)?;
    let shared = interrupt.clone();
    std::thread::spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            shared.set();
            // The first requests an orderly end; a second one exits at once, and the launcher cleans up.
            if count >= 2 {
                std::process::exit(i32::from(failure::INTERRUPTED));
            }
        }
    });
    Ok(interrupt)
}

/// Whether the caller wants heaptoll to outlive the terminal (`nohup`).
fn hangup_is_ignored() -> bool {
    // SAFETY: all zeroes is a valid `sigaction`; with a null new action the call only writes to the old one, a live
    // local.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_have_huge_pages_only_where_the_system_has_them() {
        let allowed = |system| {
            [ThpArg::Always, ThpArg::Madvise, ThpArg::Never].map(|word| word.is_allowed_where(system))
        };
        assert_eq!(allowed("always"), [true, true, true]);
        assert_eq!(allowed("madvise"), [false, true, true]);
        assert_eq!(allowed("never"), [false, false, true]);
    }
}
