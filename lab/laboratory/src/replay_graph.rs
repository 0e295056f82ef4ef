//! `heaptoll lab replay-graph`: collectors that move objects, on a trace with pointers.

mod cells;
mod charts;
mod document;
mod error;
mod facts;
mod figures;
mod findings;
mod heaps;
mod memory;
mod miss_tables;
mod misses;
mod mmtk;
mod plans;
mod ready;
mod request;
mod runs;
mod sections;

use heaptoll_report::document::Document;
use mmtk::Mmtk;

use cells::cells;
use findings::{Measured, findings};
use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::measurement::warned_of_load;
use runs::Runner;

pub use error::GraphReplayError;
pub use mmtk::Prepared;

pub use figures::{Checked, Ending, GraphReplayFigures, Heap, PlanRow, Row, Smallest, Spent, Wrong};
pub use misses::{Misses, Portion, Question, Requests, SimulatedMachine};
pub use mmtk::{ByAccessor, Caches};
pub use plans::is_known;
pub use request::{GraphReplayRequest, HeapBase, HeapSize, MOST_HEAPS};

schemars::labelled!(GraphReplayFigures, "heaptoll-replay-graph/1");

/// What was found.
pub struct GraphReplayed {
    /// The figures, as in the JSON.
    pub figures: GraphReplayFigures,
}

/// Replays a trace with pointers under every plan in every heap, interleaved in random order.
///
/// # Errors
/// It is no trace with pointers, a plan is unknown, a heap is larger than the machine's memory, the program that
/// replays is missing; Ctrl-C before anything was measured.
pub fn run(request: &GraphReplayRequest, context: &Context) -> Result<GraphReplayed, Failure> {
    let plans = plans::chosen(&request.plans)?;
    let seed = request.seed.unwrap_or_else(clock::seed);
    let interrupt = context.interrupt.flag();
    let mmtk = Mmtk {
        program: context.places.mmtk(),
        collector_threads: request.collector_threads,
        interrupt: &interrupt,
        timeout: request.timeout,
    };
    let ready = ready::ready(request, &mmtk, context.messages)?;
    if request.misses.is_some() && ready.prepared.accesses == 0 {
        let trace = request.trace.display().to_string();
        return Err(Failure::Refused(Box::new(GraphReplayError::NoAccesses { trace })));
    }
    let runner =
        Runner { mmtk: &mmtk, ready: &ready, request, plans: &plans, seed, messages: context.messages };
    let mut all: Vec<PlanRow> = plans.iter().map(|plan| PlanRow::new(plan)).collect();
    memory::refuse_what_it_cannot_hold(&mut all, &ready.prepared);
    let searched = runner.search(&mut all)?;
    heaps::over_least(&mut all);
    let mut cells = cells(request, &all)?;
    let complete = searched && warned_of_load(context.messages, || runner.measure(&mut cells))?;
    if !complete && all.iter().all(|row| row.smallest.is_none()) && cells.iter().all(|cell| cell.is_empty()) {
        return Err(Failure::Interrupted);
    }
    let measured = Measured { request, seed, prepared: ready.prepared, plans: all, cells, complete };
    Ok(GraphReplayed { figures: findings(measured) })
}

impl GraphReplayed {
    /// The document that shows it. `command` repeats the replay.
    pub fn document(&self, command: &str) -> Document {
        document::document(&self.figures, command)
    }

    /// Whether a collection lost or changed an object, or a replay failed. That a program does not fit is a result.
    pub fn has_trouble(&self) -> bool {
        let rows = self.figures.heaps.iter().flat_map(|heap| &heap.rows);
        rows.into_iter().any(|row| row.wrong().is_some() || !row.failures.is_empty())
            || self.figures.plans.iter().any(PlanRow::has_trouble)
    }
}
