//! What a program's references would do to caches and memories of every size (Zorn 1992).

pub mod callgrind;
mod curves;
mod document;
mod facts;
mod figures;
mod sections;
mod text;

use std::collections::HashMap;

use heaptoll_experiment::observation::LocalityFigures;
use heaptoll_locality::image::{self, ImageResult, ImageSimulator};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::{Partial, Sampling, Settings};
use heaptoll_locality::study::{RunInfo, StudyOptions, study};
use heaptoll_reftrace::Clock;
use heaptoll_reftrace_host::Options;
use heaptoll_units::size_text;

use crate::simulated_machine;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::findings::{Ending, Findings};
use heaptoll_runs::traced::{self, Cell, Made, execute, plan};

pub use figures::{ExactLocalityFigures, Program, SamplingFigures};

schemars::labelled!(ExactLocalityFigures, "heaptoll-locality/1");
/// Set counts that are simulated, as powers of two: with lines of 64 bytes direct-mapped caches of 2 KiB to 1 MiB, and
/// such of 8 ways of 16 KiB to 8 MiB.
const SETS: std::ops::RangeInclusive<u32> = 5..=14;

/// Whether the program's references are also simulated alone, which separates placement from pollution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// When there is more than one manager to compare.
    WhenCompared,
    /// Always.
    Always,
    /// Never: faster.
    Never,
}

/// What to simulate.
#[derive(Debug, Clone)]
pub struct ExactLocalityRequest {
    /// Programs, managers and limits.
    pub traced: traced::Request,
    /// Bytes of a cache line; a power of two.
    pub line_bytes: u64,
    /// Bytes of a page; a power of two.
    pub page_bytes: u64,
    /// A machine's data caches, nearest first, `32K/8,1M/16`; those of this machine without any.
    pub cache: Option<String>,
    /// Cycles that a reference waits for level 2, level 3, ..., and for memory, separated by commas.
    pub latency: Option<String>,
    /// The lines that are followed in large fully associative caches; all without it.
    pub sampling: Option<Sampling>,
    /// Whether the program's references are also simulated alone.
    pub alone: Alone,
    /// Working sets over windows of this many references of the program; as short as can be drawn without it.
    pub window: Option<u64>,
    /// Bytes that the simulators of one process may take; what comes after is only counted.
    pub memory_limit_bytes: u64,
    /// Caches that tables have columns for, bytes, ascending.
    pub caches_bytes: Vec<u64>,
    /// Memories in the table of page faults besides parts of what the program touches, bytes.
    pub memories_bytes: Vec<u64>,
}

/// Runs every program under every manager, its references through the simulators.
///
/// # Errors
/// Line, page, caches or latencies that no simulator takes; see also [`plan`] and [`execute`].
pub fn run(
    request: &ExactLocalityRequest,
    context: &Context,
) -> Result<Findings<ExactLocalityFigures>, Failure> {
    let (machine, machine_origin) =
        simulated_machine::choose(request.cache.as_deref(), request.latency.as_deref())
            .map_err(Failure::Usage)?;
    let settings = settings(request);
    settings.check().map_err(|error| Failure::Usage(error.to_string()))?;
    let plan = plan(&request.traced, context)?;
    let plans = simulations(request, &plan, &settings, &machine)?;
    let options = Options { references: true, ..Options::default() };
    let mut executed = execute(
        plan,
        context,
        &options,
        |cell, _| ImageSimulator::new(&plans[&cell.program.name]),
        |cell, run| {
            let (about, result) = one(cell, run);
            let kept = locality(&result, &machine, request.sampling);
            ((about, result), traced::Figures { locality: Some(kept), ..traced::Figures::default() })
        },
    )?;
    let figures = ExactLocalityFigures {
        complete: executed.ending != Ending::Interrupted,
        pinned: request.traced.pin,
        machine_origin: machine_origin.into(),
        baseline: executed.plan.experiment.baseline.clone(),
        programs: executed.programs(|made| studied(request, &machine, made)).into_iter().flatten().collect(),
    };
    let mut rows = figures.programs.iter().flat_map(|program| &program.study.rows);
    let trouble = executed.ending == Ending::Trouble || rows.any(|row| row.about.cut_short.is_some());
    executed.ending = Ending::of(figures.complete, trouble);
    let document = document::document(&figures, &request.caches_bytes);
    let facts = facts(executed.plan.refused(), &figures);
    Ok(executed.findings(figures, facts, document))
}

/// Settings of the simulators.
fn settings(request: &ExactLocalityRequest) -> Settings {
    Settings {
        line_bytes: request.line_bytes,
        page_bytes: request.page_bytes,
        sets: Some(SETS),
        memory_limit: request.memory_limit_bytes,
        sampling: request.sampling,
        ..Settings::default()
    }
}

/// What is simulated of each program, by its name.
fn simulations(
    request: &ExactLocalityRequest,
    plan: &traced::Plan,
    settings: &Settings,
    machine: &Machine,
) -> Result<HashMap<String, image::Plan>, Failure> {
    let alone = |cell: &Cell| match request.alone {
        Alone::Always => true,
        Alone::Never => false,
        Alone::WhenCompared => {
            plan.cells.iter().filter(|other| other.program.name == cell.program.name).count() > 1
        }
    };
    let mut simulations = HashMap::new();
    for cell in &plan.cells {
        let one = image::Plan::new(settings.clone(), machine.clone(), alone(cell));
        let one = one.map_err(|error| Failure::Usage(error.to_string()))?;
        simulations.insert(cell.program.name.clone(), one);
    }
    Ok(simulations)
}

/// The runs of a program, compared; none where none was made.
fn studied(
    request: &ExactLocalityRequest,
    machine: &Machine,
    made: Made<(RunInfo, ImageResult)>,
) -> Option<Program> {
    let wanted = StudyOptions {
        caches: request.caches_bytes.clone(),
        memories: request.memories_bytes.clone(),
        window: request.window,
    };
    Some(Program {
        program: made.program.name.clone(),
        command: made.program.command.clone(),
        sampling: request.sampling.map(SamplingFigures::of),
        study: study(machine, &made.rows, &wanted)?,
    })
}

/// The figures of one run: those of the process image that executed most.
fn one(cell: &Cell, run: traced::JudgedRun<ImageSimulator>) -> (RunInfo, ImageResult) {
    let mut cut_short = run.problem();
    let mut images = run.traced.images;
    let references = |totals: &[Clock; 3]| totals.iter().map(|clock| clock.loads + clock.stores).sum::<u64>();
    let all: u64 = images.iter().map(|image| references(&image.totals)).sum();
    let count = images.len();
    let main = images.swap_remove(run.main);
    let own = references(&main.totals);
    let simulated = main.sink.finish();
    let mut warnings = run.remarks;
    if let Some(Partial::Memory { limit, unsimulated }) = simulated.profile.partial {
        let why = format!(
            "the simulators needed more than {}: the last {unsimulated} references were only counted. \
             --memory-limit gives more; --sample and a longer --line need less",
            size_text(limit)
        );
        cut_short.get_or_insert(why.clone());
        warnings.push(why);
    }
    if simulated.over_time_partial {
        warnings.push("working sets stop before the end of the run, because memory ran out for them".into());
    }
    let about = RunInfo {
        manager: cell.stack.name.clone(),
        version: cell.stack.version.clone(),
        main: main.image.command.clone(),
        images: count,
        others_share: if all > 0 { (all - own) as f64 / all as f64 } else { 0.0 },
        instructions: main.totals.map(|clock| clock.instructions),
        loads: main.totals.map(|clock| clock.loads),
        stores: main.totals.map(|clock| clock.stores),
        warnings,
        cut_short,
    };
    (about, simulated)
}

/// The stored figures of a run.
fn locality(result: &ImageResult, machine: &Machine, sampling: Option<Sampling>) -> LocalityFigures {
    LocalityFigures {
        references: simulated_machine::owners(&result.profile.references),
        line_bytes: result.profile.line_bytes,
        page_bytes: result.profile.page_bytes,
        caches: simulated_machine::misses(machine, &result.machine),
        pages_touched: result.pages_touched(),
        sampled_one_in: sampling.map_or(1, |sampling| 1 << sampling.shift),
    }
}

/// What was left out, and what is simulated.
fn facts(refused: &[(String, String, String)], figures: &ExactLocalityFigures) -> Vec<(String, String)> {
    let left_out = |(program, manager, why): &(String, String, String)| {
        (format!("{manager} on {program}"), format!("left out: {why}"))
    };
    let mut facts: Vec<(String, String)> = refused.iter().map(left_out).collect();
    if let Some(one) = figures.programs.first() {
        facts.push(("caches".into(), format!("{} ({})", one.study.machine, figures.machine_origin)));
        facts.push(("line".into(), format!("{} bytes", one.study.line_bytes)));
        facts.push(("page".into(), format!("{} bytes", one.study.page_bytes)));
    }
    facts
}
