//! What malloc and free cost, exactly, in instructions (Detlefs, Dosser & Zorn 1994; Zorn 1992).

pub mod callgrind;
mod charts;
mod check;
mod document;
mod facts;
mod figures;
pub mod functions;
mod rows;
mod sections;

use heaptoll_instruction_counts::{Amounts, Costs};
use heaptoll_reftrace_host::{Options, TracedImage};

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::findings::{Ending, Findings};
use heaptoll_runs::traced::{self, Cell, JudgedRun, execute, plan};

pub use figures::{Disagreement, ExactInstructionsFigures, FunctionFigures, ImageTotals, Program, Row, Runs};

schemars::labelled!(ExactInstructionsFigures, "heaptoll-instructions/1");

/// What to count.
#[derive(Debug, Clone)]
pub struct ExactInstructionsRequest {
    /// Programs, managers and limits.
    pub traced: traced::Request,
    /// Runs of each program under each manager: whether they agree is a figure.
    pub repeat: u32,
}

/// Runs every program under every manager and counts the instructions of each routine.
///
/// # Errors
/// See [`plan`] and [`execute`].
pub fn run(
    request: &ExactInstructionsRequest,
    context: &Context,
) -> Result<Findings<ExactInstructionsFigures>, Failure> {
    let mut plan = plan(&request.traced, context)?;
    let repeat = request.repeat as usize;
    plan.cells = plan.cells.into_iter().flat_map(|cell| std::iter::repeat_n(cell, repeat)).collect();
    let options = Options { functions: true, ..Options::default() };
    let mut executed = execute(plan, context, &options, |_, _| Costs::new(), row)?;
    let figures = ExactInstructionsFigures {
        complete: executed.ending != Ending::Interrupted,
        pinned: request.traced.pin,
        repeat: request.repeat,
        programs: executed.programs(rows::program),
    };
    let document = document::document(&figures);
    Ok(executed.findings(figures, vec![], document))
}

/// The row of one run, and what is stored of it.
fn row(cell: &Cell, run: JudgedRun<Costs>) -> (Row, traced::Figures) {
    let (traced, main) = (&run.traced, run.main_image());
    let amounts = |image: &TracedImage<Costs>| image.sink.figures(image.totals).amounts;
    let all_images = (traced.images.len() > 1).then(|| {
        let sum = traced.images.iter().map(amounts).fold(Amounts::default(), Amounts::plus);
        ImageTotals { images: traced.images.len(), amounts: sum, tables: sum.tables() }
    });
    let figures = main.sink.figures(main.totals);
    let heap_high_water_bytes = Some(figures.heap.high_water_bytes);
    let objects = main.routine_objects.iter();
    let routine_objects =
        objects.map(|(routine, object)| (routine.name().to_owned(), object.clone())).collect();
    let functions = functions::of_run(traced);
    let more = Runs { runs: 1, routine_objects, functions, ..Runs::default() };
    let row = Row { figures: Some(figures), all_images, more, ..Row::of(cell, &run) };
    (row, traced::Figures { heap_high_water_bytes, ..traced::Figures::default() })
}
