//! `heaptoll report DB`: a stored experiment again, and in other forms.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::store::Store;
use heaptoll_report::terminal::{Extras, render, render_document};

use crate::exit;
use crate::extras::ExtraTables;
use crate::outputs::Outputs;
use crate::terminal;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::same_work;
use heaptoll_experiments::traced::stored;

/// Show a stored experiment again, or write it as HTML, JSON, CSV or Parquet.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment's file, as `heaptoll run` named it at its end
    db: PathBuf,
    /// Take exact counts from this file of `heaptoll instructions --db FILE`, as far as it has the same programs under the
    /// same managers: what malloc and free take is then known to the lower bounds of overhead
    #[arg(long, value_name = "DB")]
    instructions: Option<PathBuf>,
    #[command(flatten)]
    extras: ExtraTables,
    #[command(flatten)]
    outputs: Outputs,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, outputs that cannot be written.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let mut experiment = Store::read(&arguments.db)?;
    arguments.outputs.check()?;
    if let Some(path) = &arguments.instructions {
        add_traced(&mut experiment, &Store::read(path)?, path)?;
    }
    judge_outputs(&mut experiment);
    let comparison = compare(&experiment);
    let style = terminal::style();
    // Runs for the exact counts of `run --exact` are shown with what was measured, not apart from it.
    let apart = !experiment.settings.exact || stored::is_all(&experiment);
    let traced = apart.then(|| stored::document(&experiment)).flatten();
    let traced = traced.map(|document| render_document(&document, &style));
    // Exact counts are requested for the bounds.
    let extras = Extras {
        bounds: arguments.extras.bounds || arguments.instructions.is_some(),
        ..(&arguments.extras).into()
    };
    // Of runs that are all traced there is nothing to compare by time.
    let mut text = if stored::is_all(&experiment) {
        String::new()
    } else {
        render(&experiment, &comparison, &style, extras)
    };
    if let Some(traced) = traced {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&traced);
    }
    let printed = terminal::print(&text);
    let written = arguments.outputs.write(&experiment, &comparison);
    printed?;
    Ok(if written { 0 } else { exit::TROUBLE })
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
                "{name}: its counts in {path} are of other work: {}",
                differences.join("; ")
            ));
            continue;
        }
        for row in rows {
            let here = |stack: &&StackInfo| stack.program == name && stack.name == row.stack;
            if experiment.stacks.iter().any(|stack| here(&stack)) {
                experiment.observations.push(row.clone());
                added += 1;
            }
        }
    }
    if added == 0 {
        return Err(Failure::NothingToCompare(format!(
            "{} has no exact counts of a program and a manager of this experiment; `heaptoll instructions --db FILE` \
             makes them",
            path.display()
        )));
    }
    Ok(())
}
