//! `heaptoll drag`: how long objects are held before their first use and after their last.

use clap::{Args, ValueEnum};
use heaptoll_drag::{Clock, Drag, FigureOptions, ManagerInfo};
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_reftrace_host::Options;
use heaptoll_report::format::shell_command;

use self::results::{ImageTotals, ProgramResults, Results, Row};
use crate::documents::DocumentOutputs;
use crate::frames::FramesArguments;
use crate::session::Session;
use crate::traced_arguments::{TracedArguments, exit_code};
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::traced::{Cell, Ending, Figures, ImageSummary, JudgedRun, Plan, execute, plan};

mod charts;
mod document;
mod results;
mod sections;

/// Frames recorded of a call site.
const FRAMES: u32 = 12;

/// The clock of space-time, which is bytes times a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClockArg {
    /// Instructions that the program itself executes
    Instructions,
    /// Bytes allocated: exact, and the same on every machine
    Bytes,
}

/// How long objects are held before their first use and after their last.
///
/// Every data reference of the program is traced, so of each object it is known when it was allocated, touched first,
/// touched last, and freed. What it takes, bytes times the clock, is lag before the first touch, use between first and
/// last, drag after the last, and void when it is never touched (Röjemo & Runciman 1996). Drag is what a collector or
/// an earlier free could save at most. Under a collector it is also measured how long freed blocks wait to be
/// reclaimed.
///
/// Only references of the program count: what malloc, free and collections do in blocks is no use of them.
/// docs/guide/drag.md defines each figure.
///
/// Exit status: 0 all well; 1 a run failed or is not whole, or an output file could not be written; 2 the request
/// cannot be carried out; 130 interrupted (what was traced is shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll drag --sites --html drag.html -- gawk -f words.awk words\n  \
    heaptoll drag -m tithe-collect -m bdw-nofree -p perl       (how long do dead objects stay?)\n  \
    heaptoll drag --clock bytes --pointers --json - -- ./prog | jq .programs[0].managers[0].figures.all")]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Show call sites: which code makes objects that drag, or are never touched
    #[arg(long)]
    sites: bool,
    /// The clock of tables and charts; JSON has both
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t = ClockArg::Instructions)]
    clock: ClockArg,
    /// Count stores of heap pointers too: what a generational collector's write barrier would see
    #[arg(long)]
    pointers: bool,
    #[command(flatten)]
    frames: FramesArguments,
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
    let known = manager::known(context.places)?;
    let mut plan = plan(&arguments.traced.request(), &context)?;
    let clock = match arguments.clock {
        ClockArg::Instructions => Clock::Instructions,
        ClockArg::Bytes => Clock::Bytes,
    };
    let figure_options = FigureOptions {
        clock,
        sites: arguments.sites,
        pointers: arguments.pointers,
        frames: arguments.frames.shown(),
    };
    let options = Options {
        references: true,
        sites: if arguments.sites { FRAMES } else { 0 },
        pointers: arguments.pointers,
        ..Options::default()
    };
    let cells = plan.cells.clone();
    let mut rows: Vec<(String, Row)> = Vec::new();
    let ending = execute(
        &mut plan,
        &context,
        &options,
        |cell, _| Drag::new(ManagerInfo { collector: collects(cell, &known) }),
        |cell, run| {
            rows.push((cell.program.name.clone(), row(cell, run, figure_options)));
            Figures::default()
        },
    )?;
    let results = Results {
        complete: ending != Ending::Interrupted,
        pinned: !arguments.traced.no_pin,
        clock,
        programs: programs(&plan, &cells, rows),
    };
    let command = shell_command(&plan.experiment.settings.repeat_command);
    let document = document::document(&results, facts(&plan, &results), command);
    let code = arguments.outputs.deliver(&document, "heaptoll-drag/1", &results)?;
    Ok(exit_code(ending, code))
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
    let problem = (!run.is_good())
        .then(|| run.remarks.first().cloned().unwrap_or_else(|| "it was not traced to its end".into()));
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
        let figures = image.sink.figures(options);
        together.add(&figures);
        if main == Some((image.image.pid, image.image.number)) {
            row.image = Some(ImageSummary { command: image.image.command, ended });
            row.figures = Some(figures);
        }
    }
    row.all_images = (together.images > 1).then_some(together);
    row
}

/// Rows by program, the baseline first, what was refused last.
fn programs(plan: &Plan, cells: &[Cell], rows: Vec<(String, Row)>) -> Vec<ProgramResults> {
    let mut programs: Vec<ProgramResults> = Vec::new();
    for info in &plan.experiment.programs {
        let of_this = |(program, _): &&(String, Row)| *program == info.name;
        let mut managers: Vec<Row> = rows.iter().filter(of_this).map(|(_, row)| row.clone()).collect();
        let refused = plan.refused().iter().filter(|(program, ..)| *program == info.name);
        managers.extend(refused.map(|(_, stack, why)| Row {
            manager: stack.clone(),
            problem: Some(why.clone()),
            ..Row::default()
        }));
        let baseline = cells.iter().find(|cell| cell.is_baseline).map(|cell| cell.stack.name.clone());
        programs.push(ProgramResults {
            program: info.name.clone(),
            command: info.command.clone(),
            baseline: baseline.unwrap_or_default(),
            managers,
        });
    }
    programs
}

/// Managers, tracer, settings.
fn facts(plan: &Plan, results: &Results) -> Vec<(String, String)> {
    let mut facts = plan.manager_facts();
    facts.push(("traced by".into(), format!("heaptoll's tracer on Valgrind {}", plan.tracer.version())));
    facts.push(("randomness".into(), if results.pinned { "pinned" } else { "left alone" }.into()));
    facts
}
