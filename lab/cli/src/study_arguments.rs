//! Arguments shared by the commands of the studies (`delay`, `frequency`, `proximity`, `minheap`): which programs run
//! how often, and which rows are kept.

use std::path::PathBuf;

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::protocol_arguments::{FIXED, Paired};
use heaptoll::workload_args::WorkloadArgs;
use heaptoll::{exit, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_command::labelled::Labelled;
use heaptoll_experiment::runner::Ending;
use heaptoll_report::format::shell_path;
use heaptoll_runs::studied::{Findings, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Arguments of every study. The managers are each command's own, for each has its own default.
#[derive(Debug, Args)]
#[command(
    mut_arg("warmup", |arg| arg.default_value("0")),
    mut_arg("pairing", |arg| arg.default_value("interleaved"))
)]
pub struct StudyArguments {
    #[command(flatten)]
    paired: Paired,
    /// File that keeps the runs [default: a new one in $XDG_STATE_HOME/heaptoll]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub db: Option<PathBuf>,
    /// Go on with a study that was stopped; a larger -n extends it, and a complete one is shown again
    // What is fixed when a study begins is refused with it, not ignored.
    #[arg(long, value_name = "DB", conflicts_with_all = ["Programs", "ServerArgs"], conflicts_with_all = FIXED)]
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
            protocol: self.paired.protocol(),
            db: self.db.clone(),
            resume: self.resume.clone().map(|path| (path, self.paired.repetitions)),
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
