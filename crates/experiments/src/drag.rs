//! How long objects are held before their first use and after their last (Röjemo & Runciman 1996).

mod charts;
mod document;
mod figures;
mod sections;

use heaptoll_drag::{Clock, Drag, FigureOptions, ManagerInfo};
use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_reftrace_host::Options;
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::traced::{self, Cell, Ending, ImageSummary, JudgedRun, Plan, execute, plan};

pub use figures::{Figures, ImageTotals, Program, Row};

schemars::labelled!(Figures, "heaptoll-drag/1");
/// Frames recorded of a call site.
const FRAMES: u32 = 12;

/// What to trace.
#[derive(Debug, Clone)]
pub struct Request {
    /// Programs, managers and limits.
    pub traced: traced::Request,
    /// The clock by which sites are sorted, and that of tables and charts; the figures have both.
    pub clock: Clock,
    /// Whether call sites are recorded.
    pub sites: bool,
    /// Whether stores of heap pointers are counted.
    pub pointers: bool,
    /// Frames of the program's own code that name a call site.
    pub frames: usize,
}

/// What was traced.
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
}

/// Runs every program under every manager and follows each object from its allocation to its end.
///
/// # Errors
/// See [`plan`] and [`execute`].
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    let known = manager::known(context.places)?;
    let mut plan = plan(&request.traced, context)?;
    let Request { clock, sites, pointers, frames, .. } = *request;
    let figure_options = FigureOptions { clock, sites, depth: FRAMES as usize, pointers, frames };
    let options =
        Options { references: true, sites: if sites { FRAMES } else { 0 }, pointers, ..Options::default() };
    let cells = plan.cells.clone();
    let mut rows: Vec<(String, Row)> = Vec::new();
    let ending = execute(
        &mut plan,
        context,
        &options,
        |cell, _| Drag::new(ManagerInfo { collector: collects(cell, &known) }),
        |cell, run| {
            rows.push((cell.program.name.clone(), row(cell, run, figure_options)));
            traced::Figures::default()
        },
    )?;
    let figures = Figures {
        complete: ending != Ending::Interrupted,
        pinned: request.traced.pin,
        clock,
        programs: programs(&plan, &cells, rows),
    };
    let facts = facts(&plan);
    Ok(Findings { figures, ending, facts, command: plan.experiment.settings.repeat_command })
}

/// Whether freed blocks may wait to be reclaimed. An unknown manager is taken for a collector when it could announce
/// collections.
fn collects(cell: &Cell, known: &[Manager]) -> bool {
    match known.iter().find(|manager| manager.name == cell.stack.name) {
        Some(manager) => manager.collects(),
        None => cell.stack.reports_statistics,
    }
}

/// The figures of one run.
fn row(cell: &Cell, run: JudgedRun<Drag>, options: FigureOptions) -> Row {
    let problem = run.problem();
    let main = run.traced.main().map(|image| (image.image.pid, image.image.number));
    let mut row = Row {
        manager: cell.stack.name.clone(),
        version: cell.stack.version.clone(),
        problem,
        warnings: run.remarks,
        ..Row::default()
    };
    let mut together = ImageTotals::default();
    for image in run.traced.images {
        let ended = image.ending.to_string();
        let (figures, stacks) = image.sink.figures_and_stacks(options);
        together.add(&figures);
        if main == Some((image.image.pid, image.image.number)) {
            row.image = Some(ImageSummary { command: image.image.command, ended });
            row.figures = Some(figures);
            row.stacks = stacks;
        }
    }
    row.all_images = (together.images > 1).then_some(together);
    row
}

/// Rows by program, the baseline first, what was refused last.
fn programs(plan: &Plan, cells: &[Cell], rows: Vec<(String, Row)>) -> Vec<Program> {
    let made = |program: &ProgramInfo| {
        rows.iter().filter(|(name, _)| *name == program.name).map(|(_, row)| row.clone()).collect()
    };
    let refused = |manager, why| Row { manager, problem: Some(why), ..Row::default() };
    let program = |(info, managers): (&ProgramInfo, Vec<Row>)| {
        let baseline = cells.iter().find(|cell| cell.is_baseline && cell.program.name == info.name);
        Program {
            program: info.name.clone(),
            command: info.command.clone(),
            baseline: baseline.map(|cell| cell.stack.name.clone()).unwrap_or_default(),
            managers,
        }
    };
    plan.by_program(made, refused).into_iter().map(program).collect()
}

/// Managers, tracer, settings.
fn facts(plan: &Plan) -> Vec<(String, String)> {
    let mut facts = plan.manager_facts();
    facts.extend(plan.tracer_facts());
    facts
}
