//! The smallest heap in which a program completes, by collector (Sareen and Blackburn 2022, §4).

mod document;
mod facts;
mod figures;
mod measure;
mod overheads;
mod published_heap;
mod search;
mod selection;
mod smallest;

use heaptoll_experiment::java;
use heaptoll_experiment::manager::Manager;
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;

use self::measure::Plan;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::Runs;
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::{VisitOutcome, visit};
use heaptoll_runs::workload::Workload;

pub use figures::{Baseline, Collector, Figures, MeanOver, Over, Program, PublishedPair};
pub use overheads::{Mean, Overhead};
pub use published_heap::SmallestHeap;
pub use search::{Answer, End, Outcome, Question, Search, Step, Tried};
pub use selection::{Periods, is_searched, tolerance};
pub use smallest::SmallestHeaps;

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-minheap/1";

/// What to search.
#[derive(Debug, Clone)]
pub struct Request {
    /// The programs.
    pub workload: Workload,
    /// Collectors with a heap that can be fixed; every one that is here without any.
    pub manager: Vec<String>,
    /// Allocators under the baseline's mark-sweep; those of the paper without any.
    pub baseline: Vec<String>,
    /// Bytes allocated between the baseline's collections.
    pub every_bytes: Vec<u64>,
    /// An answer may be too large by this share (one page at least).
    pub tolerance: f64,
    /// Runs at either side of the edge, and of each baseline.
    pub repeats: u32,
    /// Time limit of a run, s.
    pub timeout_s: f64,
    /// Exit status of success.
    pub expect_status: i32,
    /// The words of the command that began it; empty where none did.
    pub command: Vec<String>,
}

/// What was found.
pub struct Findings {
    /// The figures.
    pub figures: Figures,
    /// Whether a program, a search or a baseline failed.
    pub failed: bool,
    collectors: Vec<Manager>,
    allocators: Vec<Manager>,
    command: Vec<String>,
}

impl Findings {
    /// The document that shows it.
    pub fn document(&self) -> Document {
        document::document(&self.figures, &self.collectors, &self.allocators, shell_command(&self.command))
    }
}

/// Searches the smallest heap of every program under every collector. Nothing is kept in a file.
///
/// # Errors
/// The request cannot be carried out, nothing completed without a limit, or Ctrl-C before a program was finished.
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    request.workload.require(false)?;
    let known = java::known(context.places)?;
    stand_ins::note(&known, request.manager.iter().chain(&request.baseline), context.messages);
    let allocators = selection::allocators(&known, &request.baseline)?;
    let collectors = selection::collectors(&known, &request.manager, &allocators, context.messages)?;
    let allocators = selection::comparable(allocators, &collectors, &request.baseline)?;
    let programs = request.workload.resolve(context)?;
    if let Some(server) = programs.iter().find(|program| program.serve.is_some()) {
        return Err(Failure::Usage(format!(
            "{} is a server: only a program that ends by itself has a smallest heap",
            server.name
        )));
    }
    let cells = programs.len() * (collectors.len() + allocators.len() * (request.every_bytes.len() + 1));
    let progress = context.messages.progress(Some(cells as u64));
    let plan = Plan {
        runs: Runs { context, timeout_s: request.timeout_s },
        known: &known,
        collectors: &collectors,
        allocators: &allocators,
        every: &request.every_bytes,
        tolerance: request.tolerance,
        repeats: request.repeats,
        expect_status: request.expect_status,
        progress: &*progress,
    };
    let mut figures = Figures {
        complete: true,
        tolerance: request.tolerance,
        repeats: request.repeats,
        timeout_s: request.timeout_s,
        programs: vec![],
        means: vec![],
        published: vec![],
    };
    let VisitOutcome { complete, mut failed } = visit(&programs, context.messages, |program| {
        let mut one = Program::of(program);
        let measured = plan.measure(program, &mut one);
        if !one.collectors.is_empty() {
            figures.programs.push(one);
        }
        measured
    })?;
    drop(progress);
    figures.complete = complete;
    if figures.programs.is_empty() {
        return Err(match figures.complete {
            true => Failure::NothingToCompare("no program completed without a limit".into()),
            false => Failure::Interrupted,
        });
    }
    figures.compare();
    failed |= figures.lacks_an_answer();
    Ok(Findings { figures, failed, collectors, allocators, command: request.command.clone() })
}
