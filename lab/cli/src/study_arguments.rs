//! Arguments shared by the commands of the studies: which programs run how often, and which rows are kept.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::protocol_arguments::Paired;
use heaptoll::workload_args::WorkloadArgs;
use heaptoll::{exit, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_command::labelled::Labelled;
use heaptoll_experiment::experiment::Protocol;
use heaptoll_experiment::runner;
use heaptoll_report::format::shell_path;
use heaptoll_runs::chosen::ChosenFindings;
use heaptoll_runs::findings::Ending;
use heaptoll_runs::studied::{Findings, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Arguments of every study. The managers are each command's own, for each has its own default.
#[derive(Debug, Args)]
#[command(
    mut_arg("warmup", |arg| arg.default_value("0")),
    mut_arg("pairing", |arg| arg.default_value("interleaved")),
    mut_arg("resume", |arg| arg.conflicts_with_all(["warmup", "pairing", "seed"]))
)]
pub struct StudyArguments {
    #[command(flatten)]
    paired: Paired,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    pub outputs: DocumentOutputs,
    #[command(flatten)]
    pub workload: WorkloadArgs,
}

/// Where the rows of a study are.
#[derive(Debug, Args)]
pub struct Kept {
    /// File that keeps the runs [default: a new one in $XDG_STATE_HOME/heaptoll]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    db: Option<PathBuf>,
    /// Go on with a study that was stopped; a larger -n extends it, and a complete one is shown again
    // What is fixed when a study begins is refused with it, not ignored.
    #[arg(long, value_name = "DB", conflicts_with_all = ["Programs", "ServerArgs", "Limits"])]
    resume: Option<PathBuf>,
}

impl Kept {
    /// What to run, as the library takes it; in that number of repetitions where one was given.
    pub fn request(&self, workload: &WorkloadArgs, protocol: Protocol, repetitions: Option<u32>) -> Request {
        Request {
            workload: workload.workload(),
            protocol,
            db: self.db.clone(),
            resume: self.resume.clone().map(|path| (path, repetitions)),
        }
    }
}

impl StudyArguments {
    /// What to run, as the library takes it.
    pub fn request(&self) -> Request {
        self.kept.request(&self.workload, self.paired.protocol(), self.paired.repetitions)
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
    let complete = outcome.ending == runner::Ending::Complete;
    Ok(ended(Ending::of(complete, outcome.has_trouble()), study, &outcome.path, code))
}

/// The same of a study whose runs were chosen one by one.
///
/// # Errors
/// Standard output is full.
pub fn deliver_chosen<F: Labelled>(
    found: &ChosenFindings<F>,
    outputs: &DocumentOutputs,
    study: &str,
) -> Result<u8, Failure> {
    let code = outputs.deliver(&found.findings.document, &found.findings.figures)?;
    Ok(ended(found.findings.ending, study, &found.path, code))
}

/// Says how the rows are used again; the exit status of a study that otherwise ends with `code`.
fn ended(ending: Ending, study: &str, path: &Path, code: u8) -> u8 {
    let again = match ending {
        Ending::Interrupted => "interrupted; go on with",
        Ending::Complete | Ending::Trouble => "again, or in other forms",
    };
    terminal::note(&format!("{again}: heaptoll {study} --resume {}", shell_path(path)));
    exit::of_runs(ending, code)
}
