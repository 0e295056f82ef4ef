//! `heaptoll run`: the main job.

use heaptoll_command::failure::Failure;
use heaptoll_compare::run::Run;
use heaptoll_experiment::compare::compare;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::runner::{self, Ending};
use heaptoll_experiment::store::Store;
use heaptoll_report::experiment::{self, Extras, advised_repetitions};
use heaptoll_report::format::shell_path;
use heaptoll_report::terminal::render_document;

use crate::entry::{Command, writes};
use crate::outputs::Outputs;
use crate::session::Session;
use crate::{exit, terminal};

mod arguments;

pub use arguments::Arguments;

impl Command for Arguments {
    const NAME: &'static str = "run";
    const FIRST: &'static [&'static str] = &["heaps", "exact"];
    writes!(of_file: heaptoll_report::json::ExperimentFile);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let context = session.context();
        let (mut run, outputs) = match &arguments.resume {
            Some(path) => {
                // Output files are named from where the command was given.
                let outputs = arguments.outputs.absolute();
                (Run::resume(path, arguments.paired.repetitions, arguments.exact, &context)?, outputs)
            }
            None => (Run::begin(&arguments.request(), &context)?, arguments.outputs.clone()),
        };
        terminal::note(&format!("every row is kept in {}", run.store.path().display()));
        let ended = run.measure(&context);
        show(arguments, &outputs, &run.experiment, &run.store, ended)
    }
}

/// Prints and writes whatever there is, and reports how it ended.
fn show(
    arguments: &Arguments,
    outputs: &Outputs,
    experiment: &Experiment,
    store: &Store,
    ended: Result<Ending, Failure>,
) -> Result<u8, Failure> {
    let comparison = compare(experiment);
    let measured = comparison.tables.iter().any(|table| table.rows.iter().any(|row| row.good > 0));
    let mut code = 0;
    let mut printed = Ok(());
    if measured || ended.is_ok() {
        let extras: Extras = (&arguments.extras).into();
        let document = experiment::document(experiment, &comparison, extras);
        let rest;
        let printable = match arguments.by_program {
            true => {
                rest = experiment::rest(experiment, &comparison, extras);
                &rest
            }
            false => &document,
        };
        printed = terminal::print(&render_document(printable, &terminal::style()));
        // A full standard output is no reason to lose the files.
        if !outputs.write(experiment, &comparison, &document) {
            code = exit::TROUBLE;
        }
    }
    let bad = comparison.tables.iter().any(|table| experiment.failed_rows(table).next().is_some());
    if bad || experiment.refused_what_was_named() {
        code = exit::TROUBLE;
    }
    let resume = format!("heaptoll run --resume {}", shell_path(store.path()));
    let ended = ended?;
    printed?;
    match ended {
        Ending::Complete => {
            if let Some(advice) = runner::advice_where_the_baseline_failed(experiment) {
                terminal::note(&advice);
            }
            terminal::note(&format!(
                "again, or in other forms: heaptoll report {}",
                shell_path(store.path())
            ));
            if let Some(repetitions) = advised_repetitions(experiment, &comparison) {
                terminal::next(&format!("{resume} -n {repetitions}"));
            }
            Ok(code)
        }
        Ending::Interrupted => {
            terminal::note(&format!("interrupted; go on with: {resume}"));
            Ok(exit::INTERRUPTED)
        }
    }
}
