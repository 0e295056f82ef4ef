//! Arguments shared by the commands of the studies (`delay`, `frequency`, `proximity`, `minheap`): which programs run
//! how often, and which rows are kept.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_command::labelled::Labelled;
use heaptoll_experiment::runner::Ending;
use heaptoll_report::format::shell_path;
use heaptoll_runs::studied::{Findings, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::documents::DocumentOutputs;
use crate::duration::positive_seconds;
use crate::outputs::own_arguments;
use crate::pairing_arg::PairingArg;
use crate::workload_args::WorkloadArgs;
use crate::{exit, terminal};

/// Arguments of every study. The managers are each command's own, for each has its own default.
#[derive(Debug, Args)]
pub struct StudyArguments {
    /// Timed repetitions; below 6 no difference can be claimed [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,
    /// Repetitions before the timed ones, not compared; the first gives memory over time
    #[arg(long, value_name = "W", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000),
        conflicts_with = "resume")]
    pub warmup: u32,
    /// Seed of all random choices [default: from the clock, printed]
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    pub seed: Option<u64>,
    /// Seconds after which an invocation is killed and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true,
        value_parser = positive_seconds, conflicts_with = "resume")]
    pub timeout: f64,
    /// Exit status of a good run
    #[arg(long, value_name = "STATUS", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255),
        conflicts_with = "resume")]
    pub expect_status: i32,
    /// How runs are paired: `interleaved` one after another, `lockstep` all settings of a manager together on one
    /// processor. Lockstep detects smaller differences, but a large delay or heap costs more when stacks share a
    /// cache
    #[arg(long, value_enum, value_name = "HOW", default_value = "interleaved", conflicts_with = "resume")]
    pub pairing: PairingArg,
    /// File that keeps the rows [default: a new one in $XDG_STATE_HOME/heaptoll]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub db: Option<PathBuf>,
    /// Go on with a study that was stopped; a larger -n extends it, and a complete one is shown again
    // What is fixed when a study begins is refused with it, not ignored.
    #[arg(long, value_name = "DB", conflicts_with_all = ["Programs", "ServerArgs"])]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub outputs: DocumentOutputs,
    #[command(flatten)]
    pub workload: WorkloadArgs,
}

impl StudyArguments {
    /// What to run, as the library takes it.
    pub fn request(&self) -> Request {
        Request {
            workload: self.workload.workload(),
            repetitions: self.repetitions,
            warmup: self.warmup,
            seed: self.seed,
            timeout_s: self.timeout,
            expect_status: self.expect_status,
            pairing: self.pairing.into(),
            db: self.db.clone(),
            resume: self.resume.clone(),
            command: own_arguments(),
        }
    }
}

/// Delivers a study's document and returns the command's exit status; `study` is the command's name.
///
/// # Errors
/// Standard output is full.
pub fn deliver<F: Labelled, P: Serialize + DeserializeOwned>(
    found: &Findings<F, P>,
    outputs: &DocumentOutputs,
    study: &str,
) -> Result<u8, Failure> {
    let Findings { outcome, document, figures } = found;
    let code = outputs.deliver(document, figures)?;
    let path = shell_path(&outcome.path);
    match outcome.ending {
        Ending::Interrupted => {
            terminal::note(&format!("interrupted; go on with: heaptoll {study} --resume {path}"));
            Ok(exit::INTERRUPTED)
        }
        Ending::Complete => {
            terminal::note(&format!("again, or in other forms: heaptoll {study} --resume {path}"));
            let trouble = outcome.has_trouble();
            Ok(if trouble { exit::TROUBLE } else { code })
        }
    }
}
