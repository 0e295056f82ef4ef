//! `heaptoll instructions`: what malloc and free cost, exactly, in instructions.

use clap::Args;
use heaptoll_instruction_counts::{Amounts, Costs};
use heaptoll_reftrace_host::{Options, Traced, TracedImage};
use heaptoll_report::format::shell_command;

use self::results::{ImageTotals, Results, Row};
use crate::documents::DocumentOutputs;
use crate::session::Session;
use crate::traced_arguments::{TracedArguments, exit_code};
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::traced::{Cell, Ending, Figures, ImageSummary, JudgedRun, Plan, execute, plan};

mod charts;
mod check;
mod document;
mod results;
mod rows;
mod sections;

/// What malloc and free cost, in instructions: exact figures that repeat, on a noisy machine too.
///
/// The program runs unchanged under each manager and under a tracer that counts every instruction, load and store, and
/// knows where routines of the malloc family begin and end. It shows instructions of a malloc, of a free and of an
/// object, their share of all, percentiles by size, and the heap at its largest: Tables IV to VII and X of Detlefs,
/// Dosser & Zorn (1994), Table 2 of Zorn (1992). docs/guide/instructions.md explains how each is counted.
///
/// What the program itself executes must be the same under every manager; that is checked, and differences are
/// reported.
///
/// Exit status: 0 all well; 1 a run failed or is not whole, or an output file could not be written; 2 the request
/// cannot be carried out; 130 interrupted (what was measured is shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll instructions -m historic -- gawk -f words.awk words\n  \
    heaptoll instructions -m mimalloc3 -m ./libmine.so --html costs.html -p cfrac -p perl\n  \
    heaptoll instructions --repeat 2 -- ./prog        (do two runs agree?)")]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Run each program under each manager so many times, and show whether the runs agree
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    let session = Session::begin()?;
    let context = session.context();
    let mut plan = plan(&arguments.traced.request(), &context)?;
    let repeat = arguments.repeat as usize;
    let cells = std::mem::take(&mut plan.cells);
    plan.cells = cells.iter().flat_map(|cell| std::iter::repeat_n(cell.clone(), repeat)).collect();
    let mut runs = rows::Runs::default();
    let ending = execute(
        &mut plan,
        &context,
        &Options::default(),
        |_, _| Costs::new(),
        |cell, run| {
            let run = one(cell, run);
            let figures = Figures {
                heap_high_water_bytes: run.figures.as_ref().map(|figures| figures.heap.high_water_bytes),
                ..Figures::default()
            };
            runs.add(cell, run);
            figures
        },
    )?;
    let results = Results {
        complete: ending != Ending::Interrupted,
        pinned: !arguments.traced.no_pin,
        repeat: arguments.repeat,
        programs: runs.programs(&plan, &cells),
    };
    let command = shell_command(&plan.experiment.settings.repeat_command);
    let document = document::document(&results, facts(&plan, &results), command);
    let code = arguments.outputs.deliver(&document, "heaptoll-instructions/1", &results)?;
    Ok(exit_code(ending, code))
}

/// The figures of one run.
fn one(cell: &Cell, run: JudgedRun<Costs>) -> Row {
    let traced: &Traced<Costs> = &run.traced;
    let amounts = |image: &TracedImage<Costs>| image.sink.figures(image.totals).amounts;
    let main = traced.main();
    let all_images = (traced.images.len() > 1).then(|| {
        let sum = traced.images.iter().map(amounts).fold(Amounts::default(), Amounts::plus);
        ImageTotals { images: traced.images.len(), amounts: sum, tables: sum.tables() }
    });
    Row {
        manager: cell.stack.name.clone(),
        version: cell.stack.version.clone(),
        problem: (!run.is_good())
            .then(|| run.remarks.first().cloned().unwrap_or_else(|| "it was not traced to its end".into())),
        image: main.map(|image| ImageSummary {
            command: image.image.command.clone(),
            ended: image.ending.to_string(),
        }),
        figures: main.map(|image| image.sink.figures(image.totals)),
        all_images,
        runs: 1,
        routine_objects: main
            .map(|image| {
                let objects = image.routine_objects.iter();
                objects.map(|(routine, object)| (routine.name().to_owned(), object.clone())).collect()
            })
            .unwrap_or_default(),
        warnings: run.remarks,
        ..Row::default()
    }
}

/// Managers, tracer, machine.
fn facts(plan: &Plan, results: &Results) -> Vec<(String, String)> {
    let mut facts = plan.manager_facts();
    facts.push(("counted by".into(), format!("heaptoll's tracer on Valgrind {}", plan.tracer.version())));
    let pinned = if results.pinned { "pinned" } else { "left alone" };
    facts.push(("randomness".into(), pinned.into()));
    facts.push(("runs of each".into(), results.repeat.to_string()));
    facts
}
