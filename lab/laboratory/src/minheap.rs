//! The smallest heap in which a program completes, by collector (Sareen and Blackburn 2022, §4).

mod document;
mod facts;
mod figures;
mod measure;
mod overheads;
mod published_heap;
mod selection;

use heaptoll_compare::smallest_heap::Closeness;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_report::format::shell_command;
use serde::{Deserialize, Serialize};

use self::measure::Plan;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::chosen::{ChosenFindings, Study};
use heaptoll_runs::findings::{Ending, Findings};
use heaptoll_runs::preparation::{baseline, experiment_file, stand_ins};
use heaptoll_runs::studied;

pub use figures::{Baseline, MeanOver, MinheapFigures, Over, Program, PublishedPair};
pub use overheads::{Mean, Overhead};
pub use published_heap::SmallestHeap;
pub use selection::{Periods, tolerance};

schemars::labelled!(MinheapFigures, "heaptoll-minheap/1");

/// The study's name in its file.
const NAME: &str = "minheap";

/// What to search.
#[derive(Debug, Clone)]
pub struct MinheapRequest {
    /// Collectors with a heap that can be fixed; every one that is here without any.
    pub manager: Vec<String>,
    /// Allocators under the baseline's mark-sweep; those of the paper without any.
    pub baseline: Vec<String>,
    /// Bytes allocated between the baseline's collections.
    pub every_bytes: Vec<u64>,
    /// An answer may be too large by this share (one page at least).
    pub tolerance: f64,
    /// The programs, and how runs are made: their repetitions at either side of the edge, and of each baseline.
    pub study: studied::Request,
}

/// What its file keeps of the request besides programs and protocol.
#[derive(Serialize, Deserialize)]
struct Requested {
    collectors: Vec<String>,
    allocators: Vec<String>,
    every_bytes: Vec<u64>,
    tolerance: f64,
}

/// Searches the smallest heap of every program under every collector.
///
/// # Errors
/// The request cannot be carried out, nothing completed without a limit, Ctrl-C before a program was finished, or a
/// resumed file of another study.
pub fn run(request: &MinheapRequest, context: &Context) -> Result<ChosenFindings<MinheapFigures>, Failure> {
    let known = manager::known_with_java(context.places)?;
    let mut study: Study<Requested> = match &request.study.resume {
        Some((path, repetitions)) => Study::resume(NAME, path, *repetitions, context)?,
        None => begin(request, &known, context)?,
    };
    let found = |names: &[String]| -> Result<Vec<Manager>, Failure> {
        names.iter().map(|name| Ok(manager::find(&known, name)?)).collect()
    };
    let (collectors, allocators) = (found(&study.requested.collectors)?, found(&study.requested.allocators)?);
    let (every, tolerance) = (study.requested.every_bytes.clone(), study.requested.tolerance);
    let protocol = study.protocol().clone();
    let baselines = allocators.len() * selection::periods(&every).count();
    let progress =
        context.messages.progress(Some((study.programs() * (collectors.len() + baselines)) as u64));
    let plan = Plan {
        known: &known,
        collectors: &collectors,
        allocators: &allocators,
        every: &every,
        closeness: Closeness { tolerance, repeats: protocol.repetitions },
        progress: &*progress,
    };
    let nothing = "no program completed without a limit";
    let visited = study.measure(nothing, context, |rows, program, measured| {
        let mut one = Program::of(program);
        let ended = plan.measure(program, rows, &mut one);
        measured.extend((!one.collectors.is_empty()).then_some(one));
        ended
    })?;
    drop(progress);
    let mut figures = MinheapFigures {
        complete: visited.complete,
        tolerance,
        repeats: protocol.repetitions,
        timeout_s: protocol.timeout_s,
        programs: visited.programs,
        means: vec![],
        published: vec![],
    };
    figures.compare();
    let ending = Ending::of(visited.complete, visited.failed || figures.lacks_an_answer());
    let again = shell_command(&protocol.repeat_command);
    let path = study.path();
    let mut document = document::document(&figures, &collectors, &allocators, again);
    document.facts.push(("rows".into(), path.display().to_string()));
    Ok(ChosenFindings { findings: Findings { figures, document, ending }, path })
}

/// Begins the study: every stack that is searched, and every baseline, is proved on every program.
fn begin(
    request: &MinheapRequest,
    known: &[Manager],
    context: &Context,
) -> Result<Study<Requested>, Failure> {
    let MinheapRequest { study, every_bytes, tolerance, .. } = request;
    study.workload.require("--set, --all, or --resume")?;
    stand_ins::note(known, request.manager.iter().chain(&request.baseline), context.messages);
    let allocators = selection::allocators(known, &request.baseline)?;
    let collectors = selection::collectors(known, &request.manager, &allocators, context.messages)?;
    let allocators = selection::comparable(allocators, &collectors, &request.baseline)?;
    experiment_file::check(study.db.as_deref())?;
    let programs = study.workload.resolve(context)?;
    if let Some(server) = programs.iter().find(|program| program.serve.is_some()) {
        return Err(Failure::Usage(format!(
            "{} is a server: only a program that ends by itself has a smallest heap",
            server.name
        )));
    }
    let mut managers = vec![manager::find(known, baseline::DEFAULT)?];
    managers.extend(collectors.iter().cloned());
    for allocator in &allocators {
        for (every, honour) in selection::periods(every_bytes) {
            managers.push(manager::find(known, &selection::baseline_name(&allocator.name, every, honour))?);
        }
    }
    let names = |of: &[Manager]| of.iter().map(|one| one.name.clone()).collect();
    let requested = Requested {
        collectors: names(&collectors),
        allocators: names(&allocators),
        every_bytes: every_bytes.clone(),
        tolerance: *tolerance,
    };
    let managers = studied::without_repeats(managers);
    Study::begin(NAME, requested, (programs, &managers[..]), study, context)
}
