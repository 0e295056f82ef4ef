//! How long objects are held before their first use and after their last (Röjemo & Runciman 1996).

mod charts;
mod document;
mod facts;
mod figures;
mod sections;

use heaptoll_drag::{Clock, Drag, FigureOptions, ManagerInfo};
use heaptoll_experiment::manager::{self, Manager, ManagerSource};
use heaptoll_reftrace_host::Options;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::findings::{Ending, Findings};
use heaptoll_runs::traced::{self, Cell, JudgedRun, execute, plan};

pub use figures::{ExactDragFigures, ImageTotals, Program, Row};

schemars::labelled!(ExactDragFigures, "heaptoll-drag/1");
/// Frames recorded of a call site.
const FRAMES: u32 = 12;

/// What to trace.
#[derive(Debug, Clone)]
pub struct ExactDragRequest {
    /// Programs, managers and limits.
    pub traced: traced::Request,
    /// The clock that sorts sites, and that of tables and charts; the figures have both.
    pub clock: Clock,
    /// Whether call sites are recorded.
    pub sites: bool,
    /// Whether stores of heap pointers are counted.
    pub pointers: bool,
    /// Frames of the program's own code that name a call site.
    pub frames: usize,
}

/// Runs every program under every manager and follows each object from its allocation to its end.
///
/// # Errors
/// See [`plan`] and [`execute`].
pub fn run(request: &ExactDragRequest, context: &Context) -> Result<Findings<ExactDragFigures>, Failure> {
    let known = manager::known(context.places)?;
    let plan = plan(&request.traced, context)?;
    let ExactDragRequest { clock, sites, pointers, frames, .. } = *request;
    let figure_options = FigureOptions { clock, sites, depth: FRAMES as usize, pointers, frames };
    let options =
        Options { references: true, sites: if sites { FRAMES } else { 0 }, pointers, ..Options::default() };
    let mut executed = execute(
        plan,
        context,
        &options,
        |cell, _| Drag::new(ManagerInfo { collector: collects(cell, &known) }),
        |cell, run| (row(cell, run, figure_options), traced::Figures::default()),
    )?;
    let figures = ExactDragFigures {
        complete: executed.ending != Ending::Interrupted,
        pinned: request.traced.pin,
        clock,
        programs: executed.programs(|made| Program::of(made, |rows| document::differs(rows, clock))),
    };
    let document = document::document(&figures);
    Ok(executed.findings(figures, vec![], document))
}

/// Whether freed blocks may wait to be reclaimed. An unknown manager is taken for a collector when it could announce
/// collections.
fn collects(cell: &Cell, known: &[Manager]) -> bool {
    match manager::find(known, &cell.stack.name) {
        Ok(manager) if manager.kind != ManagerSource::Path => manager.collects(),
        _ => cell.stack.reports_statistics,
    }
}

/// The figures of one run.
fn row(cell: &Cell, run: JudgedRun<Drag>, options: FigureOptions) -> Row {
    let mut row = Row::of(cell, &run);
    let mut together = ImageTotals::default();
    for (at, image) in run.traced.images.into_iter().enumerate() {
        let (figures, stacks) = image.sink.figures_and_stacks(options);
        together.add(&figures);
        if at == run.main {
            row.figures = Some(figures);
            row.more.stacks = stacks;
        }
    }
    row.all_images = (together.images > 1).then_some(together);
    row
}
