//! What malloc and free cost, exactly, in instructions (Detlefs, Dosser & Zorn 1994; Zorn 1992).

mod callgrind;
mod charts;
mod check;
mod document;
mod facts;
mod figures;
pub mod functions;
mod rows;
mod sections;

use std::path::{Path, PathBuf};

use heaptoll_instruction_counts::{Amounts, Costs};
use heaptoll_reftrace_host::{Options, Traced, TracedImage};
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::traced::{self, Cell, Ending, ImageSummary, JudgedRun, Plan, execute, plan};

pub use figures::{Disagreement, Figures, FunctionFigures, ImageTotals, Program, Row};

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-instructions/1";

/// What to count.
#[derive(Debug, Clone)]
pub struct Request {
    /// Programs, managers and limits.
    pub traced: traced::Request,
    /// Runs of each program under each manager: whether they agree is a figure.
    pub repeat: u32,
}

/// What was counted.
pub struct Findings {
    /// The figures.
    pub figures: Figures,
    /// How the runs ended.
    pub ending: Ending,
    facts: Vec<(String, String)>,
    command: Vec<String>,
}

impl Findings {
    /// The document that shows it.
    pub fn document(&self) -> Document {
        document::document(&self.figures, self.facts.clone(), shell_command(&self.command))
    }

    /// Writes callgrind's files into a folder, one for each program and manager; their names.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn write_callgrind(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let rows =
            self.figures.programs.iter().flat_map(|one| one.managers.iter().map(move |row| (one, row)));
        let written = rows.filter_map(|(program, row)| {
            let file = callgrind::file(program, row)?;
            Some(file.write(folder, &program.program, &row.manager).map_err(Failure::Report))
        });
        written.collect()
    }
}

/// Runs every program under every manager and counts the instructions of each routine.
///
/// # Errors
/// See [`plan`] and [`execute`].
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    let mut plan = plan(&request.traced, context)?;
    let repeat = request.repeat as usize;
    let cells = std::mem::take(&mut plan.cells);
    plan.cells = cells.iter().flat_map(|cell| std::iter::repeat_n(cell.clone(), repeat)).collect();
    let mut runs = rows::Runs::default();
    let ending = execute(
        &mut plan,
        context,
        &Options { functions: true, ..Options::default() },
        |_, _| Costs::new(),
        |cell, run| {
            let run = one(cell, run);
            let figures = traced::Figures {
                heap_high_water_bytes: run.figures.as_ref().map(|figures| figures.heap.high_water_bytes),
                ..traced::Figures::default()
            };
            runs.add(cell, run);
            figures
        },
    )?;
    let figures = Figures {
        complete: ending != Ending::Interrupted,
        pinned: request.traced.pin,
        repeat: request.repeat,
        programs: runs.programs(&plan, &cells),
    };
    let facts = facts(&plan, &figures);
    Ok(Findings { figures, ending, facts, command: plan.experiment.settings.repeat_command })
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
        problem: run.problem(),
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
        functions: functions::of_run(traced),
        warnings: run.remarks,
        ..Row::default()
    }
}

/// Managers, tracer, machine.
fn facts(plan: &Plan, figures: &Figures) -> Vec<(String, String)> {
    let mut facts = plan.manager_facts();
    facts.extend(plan.tracer_facts());
    facts.push(("runs of each".into(), figures.repeat.to_string()));
    facts
}
