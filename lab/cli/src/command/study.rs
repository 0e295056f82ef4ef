//! `heaptoll lab study`: every table and figure of a paper, measured again, and whether its claims hold.
//!
//! What a study is and does is `heaptoll_papers`'s; here are its arguments, its outputs and its exit status.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::entry::{Command, writes};
use heaptoll::exit;
use heaptoll::outputs::Pages;
use heaptoll::written_files::TextFile;
use heaptoll::{session, terminal, version};
use heaptoll_command::failure::Failure;
use heaptoll_papers::bundled::all;
use heaptoll_papers::definition::Study;
use heaptoll_papers::page::book;
use heaptoll_papers::page::list::list;
use heaptoll_papers::results::Results;
use heaptoll_papers::run::folder::Folder;
use heaptoll_papers::run::plan::Plan;
use heaptoll_papers::run::selection::studies;
use heaptoll_papers::run::{Outcome, Session};
use heaptoll_papers::stored;
use heaptoll_papers::verdict::Answer;
use heaptoll_report::format::shell_path;
use heaptoll_report::terminal::render_document;

/// Repeat a paper: measure its tables and figures, with its managers and today's, and decide whether each claim holds.
///
/// Published values are compared with ours, with intervals. A claim holds if its whole interval lies in the claimed
/// region, fails if it lies outside, and is not decided otherwise. The page then shows which effect the data could
/// have detected. Each step is one heaptoll command, named beside its figures. Every result is stored as soon as it
/// is measured: Ctrl-C loses nothing, and --resume goes on. docs/lab/study.md explains the page,
/// docs/reference/study-format.md your own studies.
///
/// Exit status: 0 all well, whatever the verdicts; 1 a step failed or was cut, or an output file could not be
/// written; 2 bad request; 130 interrupted (finished steps are shown and kept).
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaptoll lab study --list\n  heaptoll lab study zorn1992 --quick                 (its shortest form: does it all run here?)\n  \
    heaptoll lab study detlefs1994 --budget 10m --html detlefs.html\n  heaptoll lab study all --budget 30m --html studies.html --json studies.json\n  \
    heaptoll lab study ./mine.toml --only mine-time     (a study of your own, one step of it)\n  \
    heaptoll lab study --from studies.json --html again.html\n  \
    heaptoll lab study --from studies.json --judge-again     (old figures, today's claims)\n  \
    heaptoll lab study --from a.json.xz --from b.json.xz --html whole.html     (parts of one run)"
)]
pub struct Arguments {
    /// Studies by name (--list), `all` of them, or files of your own (docs/reference/study-format.md)
    #[arg(value_name = "STUDY", required_unless_present_any = ["list", "resume", "from"])]
    studies: Vec<String>,
    /// Time for all studies; in a short time steps are left out, never repetitions or programs that a claim needs
    /// [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = heaptoll::duration::duration)]
    budget: Option<f64>,
    /// Repetitions of each timed step, 10 or more; never fewer than a published figure needs, which is 20 interleaved
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=10_000), conflicts_with_all = ["quick", "resume", "from"])]
    repetitions: Option<u32>,
    /// The shortest form: one program a step under two managers, smallest inputs, two repetitions; it decides no timed claim
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
    /// Only this step, or the steps of a table or figure (`Table 3`); may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// List the studies and their steps, with the time that each takes and parts of 100 minutes at most
    #[arg(long, conflicts_with_all = ["budget", "quick", "only", "keep", "resume", "from", "html", "json", "markdown"])]
    list: bool,
    /// Folder for all results [default: a new one in $XDG_STATE_HOME/heaptoll/studies]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Go on with a study that was stopped; finished steps are not run again
    #[arg(long, value_name = "DIR", conflicts_with_all = ["studies", "quick", "only", "keep", "catalog"])]
    resume: Option<PathBuf>,
    /// Show a file that a study wrote with --json (also compressed, .json.xz); nothing is measured. Several files are
    /// parts of one run (--only), which are joined
    #[arg(long, value_name = "FILE", conflicts_with_all = ["studies", "budget", "quick", "only", "keep", "resume", "catalog"])]
    from: Vec<PathBuf>,
    /// With --from: judge the stored figures by this version's claims; nothing is measured
    // A requirement is dropped where what is required conflicts with what is given: studies, a folder.
    #[arg(long, requires = "from", conflicts_with_all = ["studies", "resume", "list"])]
    judge_again: bool,
    /// A folder with your own catalog entries (docs/reference/program-format.md)
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// What is wrong with a file, before anything is run.
fn refused(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::Refused(Box::new(error))
}

impl Arguments {
    /// The studies with the repetitions that were given.
    fn repeated(&self, mut studies: Vec<Study>) -> Vec<Study> {
        let steps = studies.iter_mut().flat_map(|study| &mut study.steps);
        if let Some(repetitions) = self.repetitions {
            steps.for_each(|step| step.repeat(repetitions));
        }
        studies
    }
}

impl Command for Arguments {
    const NAME: &'static str = "lab study";
    const FIRST: &'static [&'static str] = &["list", "budget", "quick", "only"];
    writes!(of: Results);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        if arguments.list {
            let studies = arguments.repeated(all().map_err(refused)?);
            return terminal::print(&render_document(&list(&studies), &terminal::style())).map(|()| 0);
        }
        if let [first, others @ ..] = &arguments.from[..] {
            let stored = whole(first, others)?;
            let results = match arguments.judge_again {
                true => stored.judged_again(&all().map_err(refused)?),
                false => stored,
            };
            return deliver(&arguments.outputs, &results, None);
        }
        let surroundings = session::Session::begin()?;
        let context = surroundings.context();
        let session = match &arguments.resume {
            Some(path) => Session::resume(&context, path, arguments.budget)?,
            None => Session::begin(&context, plan(arguments)?, arguments.keep.as_deref())?,
        };
        let heaptoll = std::env::current_exe()
            .map_err(|error| Failure::Usage(format!("cannot find heaptoll itself: {error}")))?;
        let outcome = session.run(&context, &heaptoll, version::commit());
        let code = deliver(&arguments.outputs, &outcome.results, Some(session.folder()))?;
        status(outcome, session.folder(), code)
    }
}

/// Stored results; those of several parts joined.
fn whole(first: &Path, others: &[PathBuf]) -> Result<Results, Failure> {
    let first = stored::results(first).map_err(refused)?;
    let part = |path: &PathBuf| Ok((path.display().to_string(), stored::results(path).map_err(refused)?));
    match others.iter().map(part).collect::<Result<Vec<_>, Failure>>()? {
        none if none.is_empty() => Ok(first),
        others => Results::joined(first, others).map_err(refused),
    }
}

/// A new study.
fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let absolute = |folder: &PathBuf| std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    let (studies, only) = studies(&arguments.studies, &arguments.only)?;
    Ok(Plan {
        command: heaptoll::outputs::own_arguments(),
        only,
        quick: arguments.quick,
        budget_s: arguments.budget,
        catalog: arguments.catalog.as_ref().map(absolute),
        ..Plan::of(arguments.repeated(studies))
    })
}

/// Prints the results, writes the requested files and those that the folder keeps; returns the exit status.
///
/// # Errors
/// Standard output is full.
fn deliver(outputs: &DocumentOutputs, results: &Results, folder: Option<&Folder>) -> Result<u8, Failure> {
    let document = book::document(results);
    let mut code = 0;
    if let Some(folder) = folder {
        let pages = Pages { html: Some(TextFile(folder.page())), ..Pages::default() };
        let kept = DocumentOutputs { pages, json: Some(TextFile(folder.results())) };
        code = kept.write(&document, results);
    }
    // The page has several papers in full, the terminal only their verdicts. So it has where there is nothing else to
    // show.
    let mut verdicts = results.papers.iter().flat_map(|paper| &paper.verdicts).peekable();
    let nothing = verdicts.peek().is_some() && verdicts.all(|verdict| verdict.answer == Answer::NotMeasured);
    let short = results.papers.len() > 1 || outputs.pages.html.is_some() || nothing;
    let front = short.then(|| book::front(results));
    Ok(outputs.deliver_with(front.as_ref().unwrap_or(&document), &document, results)?.max(code))
}

/// The exit status, that of its outputs being `code`; prints how a study that was stopped goes on.
///
/// # Errors
/// What stopped it.
fn status(outcome: Outcome, folder: &Folder, code: u8) -> Result<u8, Failure> {
    let go_on = format!("heaptoll lab study --resume {}", shell_path(folder.path()));
    if let Some(failure) = outcome.stopped {
        terminal::note(&format!("the finished steps are kept; remove the cause and go on with: {go_on}"));
        return Err(failure);
    }
    if outcome.interrupted {
        terminal::note(&format!("interrupted; go on with: {go_on}"));
        return Ok(exit::INTERRUPTED);
    }
    Ok(if outcome.trouble { exit::TROUBLE } else { code })
}
