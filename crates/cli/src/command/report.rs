//! `heaptoll report FILE`: a stored experiment again, or a result in JSON, and in other forms.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::store::{Reader, Store};
use heaptoll_report::document::{Document, Item, Section};
use heaptoll_report::experiment::{self, Extras};
use heaptoll_report::terminal::render_document;

use crate::entry::Command;
use crate::exit;
use crate::extras::ExtraTables;
use crate::one_class::one_class;
use crate::outputs::Outputs;
#[cfg(feature = "full")]
use crate::results;
use crate::terminal;
use heaptoll_command::failure::Failure;
use heaptoll_compare::{merged, same_work};
use heaptoll_runs::stored_counts as stored;

/// Show a stored experiment again or in another form, or the figures of a result in JSON.
///
/// A result is JSON of `heaptoll run` or of a command that `heaptoll diff` lists. Each program, manager and figure has a
/// row; with --csv and --parquet, each repetition has one where the figure was measured by repetitions.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment, named by `heaptoll run` at its end, or the JSON of a command
    db: PathBuf,
    /// Take exact counts from this file of `heaptoll exact instructions --db FILE`, for equal programs and managers;
    /// the lower bounds of overhead then include the cost of malloc and free
    #[arg(long, value_name = "DB")]
    instructions: Option<PathBuf>,
    #[command(flatten)]
    extras: ExtraTables,
    #[command(flatten)]
    outputs: Outputs,
}

impl Command for Arguments {
    const NAME: &'static str = "report";
    const FIRST: &'static [&'static str] = &["bounds"];

    fn run(arguments: &Self) -> Result<u8, Failure> {
        #[cfg(feature = "full")]
        return run(arguments, &heaptoll_compare::comparative::ALL);
        #[cfg(not(feature = "full"))]
        return match heaptoll_command::full::begins_as_json(&arguments.db) {
            true => Err(heaptoll_command::full::left_out("figures of JSON")),
            false => show_experiment(arguments),
        };
    }
}

/// The command where these commands' results are known.
///
/// # Errors
/// See [`Failure`].
#[cfg(feature = "full")]
pub fn run(
    arguments: &Arguments,
    known: &[heaptoll_compare::comparative::Comparable],
) -> Result<u8, Failure> {
    let Arguments { db, instructions, extras, outputs } = arguments;
    if !heaptoll_compare::diff::counts::is_json(db) {
        return show_experiment(arguments);
    }
    let of_experiments = instructions.is_some() || extras.bounds || extras.collections || extras.explain;
    if of_experiments || outputs.json.is_some() {
        return Err(Failure::Usage(format!(
            "{} is JSON already: --json, --bounds, --collections, --explain and --instructions go with an \
             experiment's database; take --csv or --parquet",
            db.display()
        )));
    }
    results::show(db, outputs, known)
}

fn show_experiment(arguments: &Arguments) -> Result<u8, Failure> {
    let db = &arguments.db;
    let reader = Reader::open(db)?;
    let is_sharded = !reader.description()?.settings.shards.is_empty();
    if is_sharded && arguments.instructions.is_none() && !arguments.outputs.have_figures() {
        return show_sharded(&reader, arguments);
    }
    let mut experiment = reader.whole()?;
    one_class(&experiment, db)?;
    if is_sharded {
        experiment = experiment.into_classes().swap_remove(0).1;
    }
    if let Some(path) = &arguments.instructions {
        add_traced(&mut experiment, &Store::read(path)?, path)?;
    }
    judge_outputs(&mut experiment);
    let comparison = compare(&experiment);
    // Runs for the exact counts of `run --exact` are shown with what was measured, not apart from it.
    let apart = !experiment.settings.exact || stored::is_all(&experiment);
    let traced = apart.then(|| stored::document(&experiment)).flatten();
    // Exact counts are requested for the bounds.
    let extras = Extras {
        bounds: arguments.extras.bounds || arguments.instructions.is_some(),
        ..(&arguments.extras).into()
    };
    let document = match traced {
        // Of runs that are all traced there is nothing to compare by time.
        Some(traced) if stored::is_all(&experiment) => traced,
        traced => with_traced(experiment::document(&experiment, &comparison, extras), traced),
    };
    let printed = terminal::print(&render_document(&document, &terminal::style()));
    let written = arguments.outputs.write(&experiment, &comparison, &document);
    printed?;
    Ok(if written { 0 } else { exit::TROUBLE })
}

/// An experiment that was measured in shards, perhaps a million rows: without all of them in memory.
fn show_sharded(reader: &Reader, arguments: &Arguments) -> Result<u8, Failure> {
    let pages = &arguments.outputs.pages;
    let document = merged::document(reader, (&arguments.extras).into(), pages.html.is_some())?;
    let printed = terminal::print(&render_document(&document, &terminal::style()));
    let written = pages.write(&document);
    printed?;
    Ok(if written { 0 } else { exit::TROUBLE })
}

/// The document of what was measured, and after it that of what was traced.
fn with_traced(mut document: Document, traced: Option<Document>) -> Document {
    let Some(traced) = traced else { return document };
    document.sections.push(Section {
        title: traced.title,
        text: Some(traced.subtitle).filter(|text| !text.is_empty()).into_iter().collect(),
        items: vec![Item::Warnings(traced.warnings)],
    });
    document.sections.extend(traced.sections);
    document
}

/// Adds the traced rows of another experiment whose programs did the same work under a stack of this one.
fn add_traced(experiment: &mut Experiment, other: &Experiment, path: &Path) -> Result<(), Failure> {
    let mut added = 0;
    let names: Vec<String> = experiment.programs.iter().map(|program| program.name.clone()).collect();
    for name in names {
        let rows = other.observations.iter().filter(|row| row.program == name && row.exact.is_some());
        if rows.clone().next().is_none() {
            continue;
        }
        let differences = same_work::differences(experiment, other, &name).work;
        if !differences.is_empty() {
            let path = path.display();
            terminal::warning(&format!(
                "{name}: the counts in {path} belong to other work: {}",
                differences.join("; ")
            ));
            continue;
        }
        for row in rows {
            if experiment.stack(&name, &row.stack).is_some() {
                experiment.observations.push(row.clone());
                added += 1;
            }
        }
    }
    if added == 0 {
        return Err(Failure::NothingToCompare(format!(
            "{} has no exact counts of a program and a manager of this experiment; `heaptoll exact instructions --db FILE` \
             makes them",
            path.display()
        )));
    }
    Ok(())
}
