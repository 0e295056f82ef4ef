//! `heaptoll diff`: what changed between two files: recordings, by call site; experiments; results of one command.

mod experiments;

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_compare::comparative::{ALL, Comparable};
use heaptoll_compare::diff::experiments::is_experiment;
use heaptoll_compare::diff::{self, DiffRequest, JsonFile};
use heaptoll_report::format::shell_command;

use crate::documents::DocumentOutputs;
use crate::duration::two_times;
use crate::entry::{Command, writes};
use crate::exit;
use crate::results::writer_of;

/// What changed between two files: recordings, experiments, results of one command.
///
/// Two recordings of a program, or two times of one, are compared by call site.
///
/// Call sites are matched by the program's own functions, without lines, addresses and folders, so that two builds
/// can be compared. The first sentences name the site that grew most: in bytes live at the peak and at the end, in
/// bytes allocated, and in calls. The differences add up to the difference of the totals. Both traces need call
/// stacks (record with --sites). The page has a flame graph of the changes.
///
/// Two files of `heaptoll exact instructions --json` are compared by function: which functions execute the additional
/// instructions. docs/questions/diff.md
///
/// Two JSON files of another command are compared by figure, the second over the first. These commands are `ledger`, `gate`,
/// `exact locality`, `exact drag`, `trace lifetimes`, `trace replay`, and of `lab` `delay`, `frequency`, `minheap`,
/// `proximity`, `reclamation` and `replay-graph`. The interval is the widest that the two allow.
///
/// Two experiments of `heaptoll run` are compared where they have the same program under the same manager: the second
/// over the first, by separate runs. They are files of `--db` or `--json`. They were not measured together, so a change
/// of the machine between them shows as a difference. For a decision, measure both in one `heaptoll run`. Programs with
/// another command, input or load are left out.
///
/// Exit status: 0 all well, whatever changed (`heaptoll gate` decides); 1 a trace is damaged (its whole part is
/// compared), or an output file could not be written; 2 not a trace, unreadable, or without call stacks or functions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll diff before.heaptoll after.heaptoll\n  \
    heaptoll diff server.heaptoll --between 10s,60s\n  \
    heaptoll diff before.heaptoll after.heaptoll --html changed.html\n  \
    heaptoll diff before.json after.json              (of heaptoll exact instructions --json)\n  \
    heaptoll diff monday.json friday.json             (of heaptoll exact locality --json)\n  \
    heaptoll diff monday.db friday.db                 (of heaptoll run --db)")]
pub struct Arguments {
    /// The trace, experiment or JSON from which changes are counted
    base: PathBuf,
    /// The second file; without it, the same trace at two times (--between)
    new: Option<PathBuf>,
    /// Compare two times of the run, such as 10s,60s from the beginning of the trace; with two traces, a time for
    /// each
    #[arg(long, value_name = "FROM,TO", value_parser = two_times)]
    between: Option<[u64; 2]>,
    /// For experiments: compare programs although their commands or inputs differ
    #[arg(long, conflicts_with = "between")]
    anyway: bool,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "diff";
    const FORMER: Option<&'static str> = Some("compare");
    writes!(of: diff::DiffFigures, diff::counts::DiffCountsFigures, diff::experiments::DiffExperimentsFigures, diff::facts::DiffFactsFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        run(arguments, &ALL)
    }
}

/// The command where these commands' results are known.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments, known: &[Comparable]) -> Result<u8, Failure> {
    let base = &arguments.base;
    if let Some(new) = arguments.new.as_ref().filter(|new| is_experiment(base) || is_experiment(new)) {
        return experiments::run(base, new, arguments.anyway, &arguments.outputs);
    }
    if let Some((base, new)) = both_json(arguments)? {
        let (base, new) = (JsonFile::read(base)?, JsonFile::read(new)?);
        if let Some(command) = writer_of(&base, known)?.filter(|command| !diff::counts::takes(command)) {
            let figures = diff::facts::measure(&base, &new, command)?;
            let document = diff::facts::document(&figures, &again(arguments), known);
            return arguments.outputs.deliver(&document, &figures);
        }
        let figures = diff::counts::measure(&base, &new)?;
        let document = diff::counts::document(&figures, &again(arguments));
        return arguments.outputs.deliver(&document, &figures);
    }
    if arguments.new.is_none() && arguments.between.is_none() {
        return Err(Failure::Usage(
            "a trace does not differ from itself: name a second trace, or two times by --between 10s,60s"
                .into(),
        ));
    }
    let [base_until_ns, new_until_ns] = arguments.between.unwrap_or([u64::MAX; 2]);
    let request = DiffRequest {
        base: arguments.base.clone(),
        base_until_ns,
        new: arguments.new.clone().unwrap_or_else(|| arguments.base.clone()),
        new_until_ns,
    };
    let figures = diff::measure(&request)?;
    let document = diff::document(&figures, &again(arguments));
    let code = arguments.outputs.deliver(&document, &figures)?;
    Ok(exit::of_trace(code, !figures.sites.are_damaged))
}

/// The two files, where they are not traces but JSON.
fn both_json(arguments: &Arguments) -> Result<Option<(&Path, &Path)>, Failure> {
    let base = arguments.base.as_path();
    let new = arguments.new.as_deref();
    if !std::iter::once(base).chain(new).any(diff::counts::is_json) {
        return Ok(None);
    }
    match (new, arguments.between) {
        (Some(new), None) if [base, new].into_iter().all(diff::counts::is_json) => Ok(Some((base, new))),
        (Some(new), None) => Err(Failure::Usage(format!(
            "one of {} and {} is JSON and one is not: compare two traces, or two files of one command's --json",
            base.display(),
            new.display()
        ))),
        _ => Err(Failure::Usage(
            "results need two files: name two files of heaptoll exact instructions --json, or of one other command, \
             without --between"
                .into(),
        )),
    }
}

/// The command that was given, without its output files.
fn again(arguments: &Arguments) -> String {
    let mut words: Vec<String> = vec!["heaptoll".into(), "diff".into(), arguments.base.display().to_string()];
    words.extend(arguments.new.iter().map(|path| path.display().to_string()));
    if let Some([from, to]) = arguments.between {
        let seconds = |ns: u64| format!("{}s", ns as f64 / 1e9);
        words.extend(["--between".into(), format!("{},{}", seconds(from), seconds(to))]);
    }
    shell_command(&words)
}
