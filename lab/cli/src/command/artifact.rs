//! `heaptoll lab artifact EXPERIMENT -o DIR`: a folder from which others measure an experiment again.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll::entry::{Command, writes};
use heaptoll::{exit, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_experiment::places::Places;
use heaptoll_laboratory::artifact::make::{ArtifactRequest, make};
use heaptoll_laboratory::artifact::verdicts::{Agreement, verdicts};
use heaptoll_laboratory::artifact::{ArtifactError, Description, check, document};
use heaptoll_report::format::{plural, shell_path};
use heaptoll_report::terminal::render_document;

/// Make a folder from which others can measure an experiment again.
///
/// It contains the experiment's rows, a description of the machine, and the digest of each file that took part. It
/// lists the Debian packages of these files, but not the files. Its script `replay` measures the experiment again and
/// compares the verdicts.
///
/// Exit status: 0 all well; 1 with --check: a file differs or is missing, or the mirror lacks a package's version;
/// with --verdicts: a verdict is contradicted or was not measured again; 2 damaged artifact, or bad request.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab artifact exp.db -o paper-artifact\n  \
    heaptoll lab artifact all.db --plan exp.plan -o paper-artifact     (an experiment of many machines)\n  \
    heaptoll lab artifact --check paper-artifact\n  \
    paper-artifact/replay                                          (measures it again here)\n  \
    heaptoll lab artifact --verdicts paper-artifact replayed.db")]
pub struct Arguments {
    /// The experiment
    #[arg(required_unless_present = "check")]
    experiment: Option<PathBuf>,
    /// The folder to make; it must not exist
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["check", "verdicts"])]
    output: Option<PathBuf>,
    /// The plan of an experiment that was measured in shards; its digests are from before the measurement
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Verify that an artifact is whole, and list files and packages that this machine or the mirror lacks
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "output", "plan", "verdicts"])]
    check: Option<PathBuf>,
    /// Compare an artifact's verdicts with the experiment's
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "plan"])]
    verdicts: Option<PathBuf>,
}

impl Command for Arguments {
    const NAME: &'static str = "lab artifact";
    writes!(of_format: Description);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        match (&arguments.check, &arguments.verdicts, &arguments.experiment, &arguments.output) {
            (Some(folder), ..) => checked(folder),
            (_, Some(folder), Some(experiment), _) => compared(folder, experiment),
            (_, _, Some(experiment), Some(folder)) => {
                let (experiment, folder) = (experiment.clone(), folder.clone());
                let plan = arguments.plan.clone();
                made(&ArtifactRequest { experiment, plan, folder })
            }
            _ => Err(Failure::Usage("name an experiment and a folder (-o)".into())),
        }
    }
}

fn refused(error: ArtifactError) -> Failure {
    Failure::Refused(Box::new(error))
}

fn made(request: &ArtifactRequest) -> Result<u8, Failure> {
    let described = make(request, &Places::find()?).map_err(refused)?;
    warn_of_changes(&described);
    terminal::note(&format!(
        "{}: {} that took part, of {}; verify it with: heaptoll lab artifact --check {}",
        request.folder.display(),
        plural(described.files.len(), "file"),
        plural(described.packages.len(), "Debian package"),
        shell_path(&request.folder)
    ));
    Ok(0)
}

fn warn_of_changes(described: &Description) {
    for file in described.files.iter().filter(|file| file.changed_since) {
        terminal::warning(&format!(
            "{} changed after the experiment began: its digest may belong to another file than the one measured",
            file.file.path
        ));
    }
}

fn checked(folder: &Path) -> Result<u8, Failure> {
    let found = check::check(folder).map_err(refused)?;
    terminal::print(&render_document(&document::of_check(&found), &terminal::style()))?;
    Ok(if found.is_all_here() { 0 } else { exit::TROUBLE })
}

fn compared(folder: &Path, experiment: &Path) -> Result<u8, Failure> {
    let (found, left_out) = verdicts(folder, experiment).map_err(refused)?;
    let is_bad = |agreement| matches!(agreement, Agreement::Contradicted | Agreement::Missing);
    let is_fine = left_out.is_empty() && !found.iter().any(|verdict| is_bad(verdict.agreement));
    terminal::print(&render_document(&document::of_verdicts(&found, left_out), &terminal::style()))?;
    Ok(if is_fine { 0 } else { exit::TROUBLE })
}
