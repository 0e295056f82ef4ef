//! `heaptoll run`: the main job.

use clap::Parser;
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner::{self, Ending};
use heaptoll_experiment::store::Store;
use heaptoll_report::terminal::render;

use crate::exit;
use crate::named::Named;
use crate::resume::{go_where_it_began, resume};
use crate::{interrupt, terminal};
use heaptoll_experiments::failure::Failure;

mod arguments;
mod begin;
mod exact;
mod goal;

pub use arguments::Arguments;

use begin::begin;

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(mut arguments: Arguments) -> Result<u8, Failure> {
    let places = Places::find()?;
    arguments.outputs.check()?;
    let interrupt = interrupt::watch()?;
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
            code = exit::TROUBLE;
        }
    }
    let bad = comparison.tables.iter().flat_map(|table| &table.rows).any(|row| !row.marks.is_empty());
    if bad || refused_what_was_named(experiment, known) {
        code = exit::TROUBLE;
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
            Ok(exit::INTERRUPTED)
        }
    }
}

/// Whether a program or a manager that the user named was refused. The experiment stores its command, so that a resumed
/// run has the same exit status as the whole run.
fn refused_what_was_named(experiment: &Experiment, known: &[Manager]) -> bool {
    let Ok(crate::Cli { command: crate::Command::Run(arguments) }) =
        crate::Cli::try_parse_from(&experiment.settings.repeat_command)
    else {
        return false;
    };
    let named =
        Named::new(known, &arguments.manager, &arguments.baseline, arguments.workload.program.clone());
    named.is_refused(experiment)
}
