//! `heaptoll study`: every table and figure of a paper, measured again, and whether its claims hold.
//!
//! A study is data (`docs/reference/study-format.md`). Each of its steps is one command of heaptoll, run as a child, so
//! every figure has a command that repeats it, and a study can do nothing that a user could not. What the commands
//! write as JSON is read as cells ([`read`]); what follows from them, the verdicts and the exhibits, is the studies
//! crate's.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use heaptoll_experiment::machine;
use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;
use heaptoll_studies::paper::budget::Length;
use heaptoll_studies::paper::bundled::all;

use self::keep::{Folder, StudyRequest};
use self::measure::Measure;
use self::selection::{Available, left_out_sentences, studies};
use self::session::{Ran, Session};
use crate::documents::DocumentOutputs;
use crate::exit;
use crate::{interrupt, terminal};
use heaptoll_experiments::clock;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::workload::{catalog, catalog_places};

mod book;
mod brackets;
mod budget;
mod child;
mod command_name;
mod commands;
mod exhibits;
mod facts;
mod keep;
mod list;
mod measure;
mod messages;
mod paper_section;
mod progress;
mod read;
mod selection;
mod session;
mod show;
mod summary;
#[cfg(test)]
mod testing;

/// Repeat a paper: measure its tables and figures, with its managers and today's, and decide whether each claim holds.
///
/// Published values are compared with ours, with intervals. A claim holds when the whole interval is in its region,
/// fails when the whole is outside, and is undecided otherwise; then the page shows what effect the data could have
/// shown. Each step is one heaptoll command, named with the figures it gave. Everything is kept in a folder as soon as
/// it is measured: Ctrl-C loses nothing, and --resume goes on. docs/guide/study.md explains how to read the page,
/// docs/reference/study-format.md how to write a study of your own.
///
/// Exit status: 0 all well, whatever the verdicts; 1 a step failed, was cut or an output file could not be written; 2
/// the request cannot be carried out; 130 interrupted (what was measured is shown and kept).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaptoll study --list\n  heaptoll study zorn1992 --quick                 (a minute: does it all run here?)\n  \
    heaptoll study detlefs1994 --budget 10m --html detlefs.html\n  heaptoll study all --budget 30m --html studies.html --json studies.json\n  \
    heaptoll study ./mine.toml --only mine-time     (a study of your own, one step of it)\n  \
    heaptoll study --from studies.json --html again.html"
)]
pub struct Arguments {
    /// Studies by name (--list), `all` of them, or files of your own (docs/reference/study-format.md)
    #[arg(value_name = "STUDY", required_unless_present_any = ["list", "resume", "from"])]
    studies: Vec<String>,
    /// The time for all: fewer programs and repetitions where it is short, and the page shows the loss of precision
    /// [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = crate::duration::duration)]
    budget: Option<f64>,
    /// The shortest form: few programs, the smallest inputs, two repetitions, which decide no timed claim
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
    /// Only this step; may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the studies and their steps
    #[arg(long, conflicts_with_all = ["budget", "quick", "only", "keep", "resume", "from", "html", "json"])]
    list: bool,
    /// Folder that keeps all [default: a new one in $XDG_STATE_HOME/heaptoll/studies]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    keep: Option<PathBuf>,
    /// Go on with a study that was stopped; steps that were finished are not run again
    #[arg(long, value_name = "DIR", conflicts_with_all = ["studies", "quick", "only", "keep", "catalog"])]
    resume: Option<PathBuf>,
    /// Show what a study wrote with --json; nothing is measured
    #[arg(long, value_name = "FILE", conflicts_with_all = ["studies", "budget", "quick", "only", "keep", "resume", "catalog"])]
    from: Option<PathBuf>,
    /// A folder with catalog entries of your own (docs/guide/programs.md explains how to write one)
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if arguments.list {
        let studies = all().map_err(|fault| Failure::Refused(Box::new(fault)))?;
        return terminal::print(&list::list(&studies)).map(|()| 0);
    }
    arguments.outputs.check()?;
    if let Some(path) = &arguments.from {
        let results = show::stored(path)?;
        return show::deliver(&arguments.outputs, &results, None);
    }
    let (folder, request) = match &arguments.resume {
        Some(path) => {
            let (folder, request) = resumed(path, arguments)?;
            (Some(folder), request)
        }
        None => (None, begin(arguments)?),
    };
    let begun = Instant::now();
    let places = Places::find()?;
    let known = manager::known(&places)?;
    let catalog = catalog(&places, request.catalog.as_deref())?;
    let available = Available { catalog: &catalog, folders: catalog_places(&places), known: &known };
    let (fitted, taken_out) = available.fit(&request.studies, &request.only);
    for words in left_out_sentences(&taken_out) {
        terminal::warning(&words);
    }
    if fitted.iter().all(|study| study.steps.is_empty())
        && request.studies.iter().any(|one| !one.steps.is_empty())
    {
        return Err(Failure::NothingToCompare("no step can be run here: see the warnings above".into()));
    }
    let length = length(&request);
    let has_size = |program: &str, size: &str| available.has_size(program, size);
    if let (None, Length::Seconds(seconds)) = (&arguments.resume, length) {
        budget::check(&fitted, seconds, &has_size)?;
    }
    let interrupt = interrupt::watch()?;
    let folder = match folder {
        Some(folder) => folder,
        None => Folder::make(arguments.keep.as_deref(), &request)?,
    };
    terminal::note(&format!("everything is kept in {}", folder.path().display()));
    let heaptoll = std::env::current_exe()
        .map_err(|error| Failure::Usage(format!("cannot find heaptoll itself: {error}")))?;
    let load = machine::load()[0];
    let mut session = Session {
        folder: &folder,
        studies: &fitted,
        length,
        begun,
        more_time: arguments.resume.is_some() && arguments.budget.is_some(),
        measure: Measure {
            heaptoll: &heaptoll,
            interrupt: &interrupt,
            known: &known,
            seed: request.seed,
            catalog: request.catalog.as_deref(),
        },
        has_size: &has_size,
    };
    let ran: Ran = session.run();
    let results = show::results(&request, &fitted, &taken_out, &ran, facts::facts(&available, &fitted), load);
    let code = show::deliver(&arguments.outputs, &results, Some(&folder))?;
    status(ran, &folder, code)
}

/// The study of a folder, to go on with.
fn resumed(path: &Path, arguments: &Arguments) -> Result<(Folder, StudyRequest), Failure> {
    let (folder, mut request) = Folder::open(path).map_err(keep::refused)?;
    if request.quick && arguments.budget.is_some() {
        return Err(Failure::Usage(format!(
            "{} was begun with --quick, which has no budget: go on without --budget",
            path.display()
        )));
    }
    // A new budget counts from the beginning, as the first did.
    request.budget_s = arguments.budget.or(request.budget_s);
    if request.heaptoll != env!("CARGO_PKG_VERSION") {
        terminal::warning(&format!(
            "heaptoll {} began it: its figures may not compare with new ones",
            request.heaptoll
        ));
    }
    Ok((folder, request))
}

/// How much of its steps is made.
fn length(request: &StudyRequest) -> Length {
    match (request.quick, request.budget_s) {
        (true, _) => Length::Quick,
        (false, Some(seconds)) => Length::Seconds(seconds),
        (false, None) => Length::Whole,
    }
}

/// The exit status, that of its outputs being `code`; prints how a study that was stopped goes on.
///
/// # Errors
/// What stopped it.
fn status(ran: Ran, folder: &Folder, code: u8) -> Result<u8, Failure> {
    let go_on = format!("heaptoll study --resume {}", folder.path().display());
    if let Some(failure) = ran.stopped {
        terminal::note(&format!("what was measured is kept; when the cause is mended, go on with: {go_on}"));
        return Err(failure);
    }
    if ran.interrupted {
        terminal::note(&format!("interrupted; go on with: {go_on}"));
        return Ok(exit::INTERRUPTED);
    }
    Ok(if ran.trouble() { exit::TROUBLE } else { code })
}

/// A new study.
fn begin(arguments: &Arguments) -> Result<StudyRequest, Failure> {
    let mut command: Vec<String> = crate::outputs::own_arguments();
    if let Some(first) = command.first_mut() {
        *first = "heaptoll".into();
    }
    let begun = clock::now();
    Ok(StudyRequest {
        schema: StudyRequest::schema(),
        heaptoll: env!("CARGO_PKG_VERSION").into(),
        begun_unix_s: begun.as_secs_f64(),
        command,
        studies: studies(&arguments.studies, &arguments.only)?,
        only: arguments.only.clone(),
        quick: arguments.quick,
        budget_s: arguments.budget,
        catalog: arguments
            .catalog
            .as_ref()
            .map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone())),
        seed: begun.as_secs() % 1_000_000,
    })
}
