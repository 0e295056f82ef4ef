//! How long requests take, by their distance to the last collection (Sareen and Blackburn 2022, §6).

mod charts;
mod distance;
mod document;
mod facts;
mod figures;
mod groups;
mod java_pauses;
mod marks;
mod measure;
mod packed;
mod portions;
mod published_nearness;
mod selection;

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

pub(crate) use distance::{Distances, Sample};
pub use figures::{Program, ProximityFigures, PublishedPair, Scale, Stack};
pub use groups::{Group, Grouped, Shape};
pub use portions::{Portion, Ratio, Series};
pub(crate) use portions::{beginning, portions, series};
pub use published_nearness::Nearness;

schemars::labelled!(ProximityFigures, "heaptoll-proximity/1");

/// The study's name in its file.
const NAME: &str = "proximity";

/// What to run.
#[derive(Debug, Clone)]
pub struct ProximityRequest {
    /// Collectors, as stacks; the paper's and Tithe without any.
    pub manager: Vec<String>,
    /// Numbers of collections in a run.
    pub collections: Vec<u64>,
    /// How requests are grouped.
    pub shape: Shape,
    /// Whether the processor time of requests is recorded too.
    pub cpu: bool,
    /// The programs, and how runs are made; the seed orders them. If none is named: all of the catalog that mark
    /// their requests.
    pub study: studied::Request,
}

/// What its file keeps of the request besides programs and protocol.
#[derive(Serialize, Deserialize)]
struct Requested {
    stacks: Vec<String>,
    collections: Vec<u64>,
    groups: usize,
    fewest: usize,
    /// `None`: no limit.
    cap: Option<f64>,
    cpu: bool,
}

impl Requested {
    fn shape(&self) -> Shape {
        Shape { groups: self.groups, fewest: self.fewest, cap: self.cap.unwrap_or(f64::INFINITY) }
    }
}

/// Runs every program under every collector at every number of collections.
///
/// # Errors
/// The request cannot be carried out, nothing could be measured, Ctrl-C before a program was finished, or a resumed file
/// of another study.
pub fn run(
    request: &ProximityRequest,
    context: &Context,
) -> Result<ChosenFindings<ProximityFigures>, Failure> {
    let known = manager::known_with_java(context.places)?;
    let mut study: Study<Requested> = match &request.study.resume {
        Some((path, repetitions)) => Study::resume(NAME, path, *repetitions, context)?,
        None => begin(request, &known, context)?,
    };
    let stacks = study.requested.stacks.iter().map(|name| manager::find(&known, name));
    let stacks: Vec<Manager> = stacks.collect::<Result<_, _>>()?;
    let (collections, protocol) = (study.requested.collections.clone(), study.protocol().clone());
    let (runs, seed) = (protocol.repetitions, protocol.seed);
    let steps = study.programs() * stacks.len() * collections.len() * runs as usize;
    let progress = context.messages.progress(Some(steps as u64));
    let plan = Plan {
        known: &known,
        stacks: &stacks,
        java: java_pauses::are_java(&stacks)?,
        collections: &collections,
        shape: study.requested.shape(),
        cpu: study.requested.cpu,
        repetitions: runs,
        seed,
        progress: &*progress,
    };
    let visited = study.measure("no program could be measured", context, |rows, program, measured| {
        let mut one = Program {
            program: program.name.clone(),
            command: program.command.clone(),
            requested_bytes: 0,
            stacks: vec![],
        };
        let ended = plan.measure(program, rows, &mut one);
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
    let path = study.path();
    let mut document = document::document(&figures, &stacks, shell_command(&protocol.repeat_command));
    document.facts.push(("rows".into(), path.display().to_string()));
    Ok(ChosenFindings { findings: Findings { figures, document, ending }, path })
}

/// Begins the study: every collector is proved on every program.
fn begin(
    request: &ProximityRequest,
    known: &[Manager],
    context: &Context,
) -> Result<Study<Requested>, Failure> {
    let mut workload = request.study.workload.clone();
    if workload.is_many() {
        return Err(Failure::Usage(
            "most programs of the catalog mark no requests: name those that do with -p (without any, the event programs)"
                .into(),
        ));
    }
    if workload.is_empty() {
        workload.program = selection::PROGRAMS.map(String::from).into();
    }
    stand_ins::note(known, &request.manager, context.messages);
    let stacks = selection::stacks(known, &request.manager, context.messages)?;
    if stacks.is_empty() {
        return Err(Failure::Usage("no collector is built; name one with -m (`heaptoll managers`)".into()));
    }
    java_pauses::are_java(&stacks)?;
    let mut collections = request.collections.clone();
    collections.sort_unstable();
    collections.dedup();
    experiment_file::check(request.study.db.as_deref())?;
    let programs = workload.resolve(context)?;
    let requested = Requested {
        stacks: stacks.iter().map(|stack| stack.name.clone()).collect(),
        collections,
        groups: request.shape.groups,
        fewest: request.shape.fewest,
        cap: Some(request.shape.cap).filter(|times| times.is_finite()),
        cpu: request.cpu,
    };
    let glibc = manager::find(known, baseline::DEFAULT)?;
    let managers = studied::without_repeats(std::iter::once(glibc).chain(stacks).collect());
    Study::begin(NAME, requested, (programs, &managers[..]), &request.study, context)
}
