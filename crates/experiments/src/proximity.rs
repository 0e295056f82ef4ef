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

use heaptoll_experiment::java;
use heaptoll_experiment::manager::Manager;
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;

use self::measure::Plan;
use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::Runs;
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::{VisitOutcome, visit};
use heaptoll_runs::workload::Workload;

pub(crate) use distance::{Distances, Sample};
pub use figures::{Figures, Program, PublishedPair, Scale, Stack};
pub use groups::{Group, Grouped, Shape};
pub use portions::{Portion, Ratio, Series};
pub(crate) use portions::{beginning, portions, series};
pub use published_nearness::Nearness;

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-proximity/1";

/// What to run.
#[derive(Debug, Clone)]
pub struct Request {
    /// The programs; those of the catalog that mark their requests without any.
    pub workload: Workload,
    /// Collectors, as stacks; the paper's and Tithe without any.
    pub manager: Vec<String>,
    /// Numbers of collections in a run.
    pub collections: Vec<u64>,
    /// Runs of each.
    pub runs: u32,
    /// How requests are grouped.
    pub shape: Shape,
    /// Seed of the order; from the clock without one.
    pub seed: Option<u64>,
    /// Whether the processor time of requests is recorded too.
    pub cpu: bool,
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
    /// Whether a program or a stack failed.
    pub failed: bool,
    stacks: Vec<Manager>,
    command: Vec<String>,
}

impl Findings {
    /// The document that shows it.
    pub fn document(&self) -> Document {
        document::document(&self.figures, &self.stacks, shell_command(&self.command))
    }
}

/// Runs every program under every collector at every number of collections. Nothing is kept in a file.
///
/// # Errors
/// The request cannot be carried out, nothing could be measured, or Ctrl-C before a program was finished.
pub fn run(mut request: Request, context: &Context) -> Result<Findings, Failure> {
    if request.workload.is_many() {
        return Err(Failure::Usage(
            "most programs of the catalog mark no requests: name those that do with -p (without any, the event programs)"
                .into(),
        ));
    }
    if request.workload.is_empty() {
        request.workload.program = selection::PROGRAMS.map(String::from).into();
    }
    let known = java::known(context.places)?;
    stand_ins::note(&known, &request.manager, context.messages);
    let stacks = selection::stacks(&known, &request.manager, context.messages)?;
    if stacks.is_empty() {
        return Err(Failure::Usage("no collector is built; name one with -m (`heaptoll managers`)".into()));
    }
    let java = java_pauses::are_java(&stacks)?;
    request.collections.sort_unstable();
    request.collections.dedup();
    let programs = request.workload.resolve(context)?;
    let seed = request.seed.unwrap_or_else(clock::seed);
    let steps = programs.len() * stacks.len() * request.collections.len() * request.runs as usize;
    let progress = context.messages.progress(Some(steps as u64));
    let plan = Plan {
        runs: Runs { context, timeout_s: request.timeout_s },
        known: &known,
        stacks: &stacks,
        java,
        collections: &request.collections,
        repetitions: request.runs,
        shape: request.shape,
        seed,
        cpu: request.cpu,
        expect_status: request.expect_status,
        progress: &*progress,
    };
    let mut figures =
        Figures { complete: true, runs: request.runs, seed, programs: vec![], published: vec![] };
    let VisitOutcome { complete, mut failed } = visit(&programs, context.messages, |program| {
        let mut one = Program {
            program: program.name.clone(),
            command: program.command.clone(),
            requested_bytes: 0,
            stacks: vec![],
        };
        let measured = plan.measure(program, &mut one);
        if !one.stacks.is_empty() {
            figures.programs.push(one);
        }
        measured.and(if context.interrupt.is_set() { Err(Failure::Interrupted) } else { Ok(()) })
    })?;
    drop(progress);
    figures.complete = complete;
    if figures.programs.is_empty() {
        return Err(match figures.complete {
            true => Failure::NothingToCompare("no program could be measured".into()),
            false => Failure::Interrupted,
        });
    }
    figures.compare();
    let rows = || figures.programs.iter().flat_map(|program| &program.stacks);
    failed |=
        rows().any(|row| row.refused.is_some() || row.scales.iter().any(|scale| !scale.failures.is_empty()));
    Ok(Findings { failed, figures, stacks, command: request.command })
}
