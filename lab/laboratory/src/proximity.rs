//! How long requests take, by their distance to the last collection (Sareen and Blackburn 2022, §6).

mod charts;
mod distance;
mod document;
mod facts;
mod figures;
mod groups;
mod java_pauses;
mod measure;
mod portions;
mod published_nearness;
mod selection;

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

pub(crate) use distance::{Distances, Sample};
pub use figures::{Program, ProximityFigures, PublishedPair, Scale, Stack};
pub use groups::{Group, Grouped, Shape};
pub use portions::{Portion, Ratio, Series};
pub(crate) use portions::{beginning, portions, series};
pub use published_nearness::Nearness;

schemars::labelled!(ProximityFigures, "heaptoll-proximity/1");

/// What to run.
#[derive(Debug, Clone)]
pub struct ProximityRequest {
    /// The programs; those of the catalog that mark their requests without any.
    pub workload: Workload,
    /// Collectors, as stacks; the paper's and Tithe without any.
    pub manager: Vec<String>,
    /// Numbers of collections in a run.
    pub collections: Vec<u64>,
    /// How requests are grouped.
    pub shape: Shape,
    /// Whether the processor time of requests is recorded too.
    pub cpu: bool,
    /// How runs are made; the seed is of their order.
    pub protocol: Protocol,
}

/// Runs every program under every collector at every number of collections. Nothing is kept in a file.
///
/// # Errors
/// The request cannot be carried out, nothing could be measured, or Ctrl-C before a program was finished.
pub fn run(mut request: ProximityRequest, context: &Context) -> Result<Findings<ProximityFigures>, Failure> {
    if request.workload.is_many() {
        return Err(Failure::Usage(
            "most programs of the catalog mark no requests: name those that do with -p (without any, the event programs)"
                .into(),
        ));
    }
    if request.workload.is_empty() {
        request.workload.program = selection::PROGRAMS.map(String::from).into();
    }
    let known = manager::known_with_java(context.places)?;
    stand_ins::note(&known, &request.manager, context.messages);
    let stacks = selection::stacks(&known, &request.manager, context.messages)?;
    if stacks.is_empty() {
        return Err(Failure::Usage("no collector is built; name one with -m (`heaptoll managers`)".into()));
    }
    let java = java_pauses::are_java(&stacks)?;
    request.collections.sort_unstable();
    request.collections.dedup();
    let programs = request.workload.resolve(context)?;
    let protocol = request.protocol;
    let (runs, seed) = (protocol.repetitions, protocol.seed);
    let steps = programs.len() * stacks.len() * request.collections.len() * runs as usize;
    let progress = context.messages.progress(Some(steps as u64));
    let plan = Plan {
        runs: Runs { context, protocol: &protocol },
        known: &known,
        stacks: &stacks,
        java,
        collections: &request.collections,
        shape: request.shape,
        cpu: request.cpu,
        progress: &*progress,
    };
    let visited = visit(&programs, context.messages, "no program could be measured", |program, measured| {
        let mut one = Program {
            program: program.name.clone(),
            command: program.command.clone(),
            requested_bytes: 0,
            stacks: vec![],
        };
        let ended = plan.measure(program, &mut one);
        measured.extend((!one.stacks.is_empty()).then_some(one));
        ended.and(if context.interrupt.is_set() { Err(Failure::Interrupted) } else { Ok(()) })
    })?;
    drop(progress);
    let complete = visited.complete;
    let mut figures =
        ProximityFigures { complete, runs, seed, programs: visited.programs, published: vec![] };
    figures.compare();
    let mut rows = figures.programs.iter().flat_map(|program| &program.stacks);
    let is_bad =
        |row: &Stack| row.refused.is_some() || row.scales.iter().any(|scale| !scale.failures.is_empty());
    let ending = Ending::of(visited.complete, visited.failed || rows.any(is_bad));
    let document = document::document(&figures, &stacks, shell_command(&protocol.repeat_command));
    Ok(Findings { figures, document, ending })
}
