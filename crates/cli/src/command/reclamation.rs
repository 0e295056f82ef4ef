//! `heaptoll reclamation`: what the moment of reclamation costs.

use std::path::PathBuf;

use clap::Args;
use heaptoll_experiment::places::Places;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::reclamation::{self, moment_of};
use heaptoll_oracle::Moment;

use crate::session::Session;
use crate::study_arguments::{StudyArguments, deliver};

/// What the moment of reclamation costs: one manager, and objects freed earlier or later than the program does.
///
/// A recording of each program (`heaptoll oracle`, made first where it is missing) states when each object is used last.
/// The program then runs natively over each manager with its objects freed at their last use, when it frees them, so many
/// bytes later, at collections, or not at all. The manager is the same and so is the layer in front of it: what differs is
/// the moment alone, without the work of finding out what is dead. Ratios are to the program's own free.
///
/// Exit status: 0 all well; 1 a stack failed, gave wrong output or was refused, or an output file could not be written;
/// 2 the request cannot be carried out; 130 interrupted (what was measured is shown and kept).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll reclamation -- gawk -f report.awk access.log\n  \
    heaptoll reclamation -p cfrac -p espresso -m mimalloc3 --pairing lockstep --html reclamation.html\n  \
    heaptoll reclamation -p perl --moments last-use,delay:4K,delay:1M,collect:1M\n  \
    heaptoll reclamation --resume reclamation.db -n 20      (ten more repetitions)")]
pub struct Arguments {
    /// A manager to hold fixed, by name (`heaptoll managers`) or path, or a group of them; may be given several times
    /// [default: glibc, mimalloc3, tithe-explicit, as far as they are built]
    #[arg(short, long, value_name = "MANAGER", conflicts_with = "resume")]
    manager: Vec<String>,
    /// When objects are freed: last-use, free, delay:SIZE after the program's free, collect:SIZE at the next multiple of so
    /// many bytes allocated, never; free, which all are compared with, is always among them
    #[arg(long, value_name = "MOMENT,...", value_delimiter = ',', value_parser = moment,
        default_value = "last-use,free,delay:64K,delay:1M,collect:64K,collect:1M,never", conflicts_with = "resume")]
    moments: Vec<Moment>,
    /// Folder of the recordings; those that are missing there, or are of another build or command, are made first
    /// [default: $XDG_CACHE_HOME/heaptoll/oracles]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    oracles: Option<PathBuf>,
    #[command(flatten)]
    study: StudyArguments,
}

fn moment(text: &str) -> Result<Moment, String> {
    moment_of(text).ok_or_else(|| "give last-use, free, delay:SIZE, collect:SIZE or never".into())
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.study.outputs.check()?;
    let session = Session::begin()?;
    let folder = arguments.oracles.clone().unwrap_or_else(Places::oracles);
    let oracles = std::path::absolute(&folder)
        .ok()
        .filter(|path| path.to_str().is_some_and(|text| !text.contains([',', '\n'])))
        .ok_or_else(|| {
            let folder = folder.display();
            Failure::Usage(format!("--oracles {folder}: a path with a comma or that is no text cannot be part of a stack's name"))
        })?;
    let request = reclamation::Request {
        manager: arguments.manager.clone(),
        moments: arguments.moments.clone(),
        oracles,
        study: arguments.study.request(),
    };
    let result = reclamation::run(&request, &session.context())?;
    deliver(
        &result.outcome,
        &arguments.study.outputs,
        "reclamation",
        reclamation::SCHEMA,
        &result.document(),
        &result.figures(),
    )
}
