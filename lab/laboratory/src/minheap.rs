//! The smallest heap in which a program completes, by collector (Sareen and Blackburn 2022, §4).

mod document;
mod facts;
mod figures;
mod measure;
mod overheads;
mod published_heap;
mod selection;

use heaptoll_compare::smallest_heap::Closeness;
use heaptoll_experiment::experiment::Protocol;
use heaptoll_experiment::manager;
use heaptoll_report::format::shell_command;

use self::measure::Plan;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::Runs;
use heaptoll_runs::findings::{Ending, Findings};
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::visit;
use heaptoll_runs::workload::Workload;

pub use figures::{Baseline, MeanOver, MinheapFigures, Over, Program, PublishedPair};
pub use overheads::{Mean, Overhead};
pub use published_heap::SmallestHeap;
pub use selection::{Periods, tolerance};

schemars::labelled!(MinheapFigures, "heaptoll-minheap/1");

/// What to search.
#[derive(Debug, Clone)]
pub struct MinheapRequest {
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
    /// How runs are made; so many at either side of the edge, and of each baseline.
    pub protocol: Protocol,
}

/// Searches the smallest heap of every program under every collector. Nothing is kept in a file.
///
/// # Errors
/// The request cannot be carried out, nothing completed without a limit, or Ctrl-C before a program was finished.
pub fn run(request: &MinheapRequest, context: &Context) -> Result<Findings<MinheapFigures>, Failure> {
    let protocol = &request.protocol;
    request.workload.require(false)?;
    let known = manager::known_with_java(context.places)?;
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
        runs: Runs { context, protocol },
        known: &known,
        collectors: &collectors,
        allocators: &allocators,
        every: &request.every_bytes,
        closeness: Closeness { tolerance: request.tolerance, repeats: protocol.repetitions },
        progress: &*progress,
    };
    let nothing = "no program completed without a limit";
    let visited = visit(&programs, context.messages, nothing, |program, measured| {
        let mut one = Program::of(program);
        let ended = plan.measure(program, &mut one);
        measured.extend((!one.collectors.is_empty()).then_some(one));
        ended
    })?;
    drop(progress);
    let mut figures = MinheapFigures {
        complete: visited.complete,
        tolerance: request.tolerance,
        repeats: protocol.repetitions,
        timeout_s: protocol.timeout_s,
        programs: visited.programs,
        means: vec![],
        published: vec![],
    };
    figures.compare();
    let ending = Ending::of(visited.complete, visited.failed || figures.lacks_an_answer());
    let again = shell_command(&protocol.repeat_command);
    let document = document::document(&figures, &collectors, &allocators, again);
    Ok(Findings { figures, document, ending })
}
