//! `heaptoll choose`: which manager, with which settings, fits a program best.

use clap::{Args, ValueEnum};
use heaptoll_experiments::choose::{self, Preference, Request};
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::preparation::baseline;
use heaptoll_experiments::run;
use heaptoll_report::format::{shell_command, shell_path};

use crate::documents::DocumentOutputs;
use crate::duration::positive_seconds;
use crate::memory::bytes;
use crate::outputs::own_arguments;
use crate::session::Session;
use crate::workload_args::WorkloadArgs;
use crate::{exit, terminal};

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PreferenceArg {
    /// Little CPU time
    Time,
    /// Little memory
    Memory,
    /// Both alike
    Balance,
}

/// Choose a memory manager and its settings for a program.
///
/// The modern managers, alone and with settings (arenas, decay, trim and mmap thresholds, huge pages), run the program at
/// once on one processor, twice; the better third goes on with one repetition more, until two are left. These and
/// the default then run afresh, and the answer is of these runs only: what it saves and costs, with intervals, and how to
/// set it. Where no finalist is better for certain, the default is kept. docs/guide/choose.md
///
/// Exit status: 0 all well; 1 an output file could not be written; 2 the request cannot be carried out, or no candidate
/// works; 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll choose -- gawk -f report.awk data.txt\n  \
    heaptoll choose --prefer memory --memory-limit 512M -- ./prog\n  \
    heaptoll choose -m glibc -m jemalloc --settings -p cfrac --size demo\n  \
    heaptoll choose --serve 'redis-server --port 0 --unixsocket {tmp}/s' --ready '(?i)ready to accept connections' \\\n    \
    --load 'redis-benchmark -s {tmp}/s -q -n 200000'")]
pub struct Arguments {
    /// A manager or a group to choose from, with options where wanted; may be given several times [default: modern, with
    /// settings]
    #[arg(short, long, value_name = "MANAGER")]
    manager: Vec<String>,
    /// Try managers that are named by -m with settings, too
    #[arg(long, requires = "manager")]
    settings: bool,
    /// What is wanted
    #[arg(long, value_enum, value_name = "WHAT", default_value = "balance")]
    prefer: PreferenceArg,
    /// Peak resident memory that a run may take: what takes more is no candidate
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory_limit: Option<u64>,
    /// The manager that is kept where nothing is better, and that all are compared with
    #[arg(long, value_name = "MANAGER", default_value = baseline::DEFAULT)]
    baseline: String,
    /// Repetitions of the fresh runs; below 6 no difference can be claimed [default: 20]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: Option<u32>,
    /// Seed of every random choice [default: from the clock, printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Seconds after which an invocation is killed and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true, value_parser = positive_seconds)]
    timeout: f64,
    /// Exit status with which the program ends when all is well
    #[arg(long, value_name = "STATUS", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255))]
    expect_status: i32,
    #[command(flatten)]
    outputs: DocumentOutputs,
    #[command(flatten)]
    workload: WorkloadArgs,
}

impl Arguments {
    fn request(&self) -> Request {
        let managers: Vec<&str> = self.manager.iter().map(String::as_str).collect();
        Request {
            run: run::Request {
                baseline: self.baseline.clone(),
                repetitions: self.repetitions,
                seed: self.seed,
                timeout_s: self.timeout,
                expect_status: self.expect_status,
                command: own_arguments(),
                ..run::Request::of(self.workload.workload(), &managers)
            },
            manager: self.manager.clone(),
            settings: self.settings,
            preference: match self.prefer {
                PreferenceArg::Time => Preference::Time,
                PreferenceArg::Memory => Preference::Memory,
                PreferenceArg::Balance => Preference::Balance,
            },
            memory_limit_bytes: self.memory_limit,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    let session = Session::begin()?;
    let context = session.context();
    let found = choose::run(&arguments.request(), &context)?;
    let document = found.document(&context, &shell_command(&own_arguments()));
    let code = arguments.outputs.deliver(&document, choose::SCHEMA, &found.figures)?;
    terminal::note(&format!(
        "the fresh runs in other forms: heaptoll report {}",
        shell_path(found.run.store.path())
    ));
    Ok(if found.complete { code } else { exit::INTERRUPTED })
}
