//! What a program's references would do to caches and memories of every size (Zorn 1992).

mod callgrind;
mod curves;
mod document;
mod facts;
mod figures;
mod sections;
mod text;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use heaptoll_experiment::observation::LocalityFigures;
use heaptoll_locality::image::{self, ImageResult, ImageSimulator};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::{Partial, Sampling, Settings};
use heaptoll_locality::study::{RunInfo, StudyOptions, study};
use heaptoll_reftrace::Clock;
use heaptoll_reftrace_host::Options;
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;
use heaptoll_units::size_text;

use crate::simulated_machine;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::traced::{self, Cell, Ending, execute, plan};

pub use figures::{Figures, Program, SamplingFigures};

/// The schema of the figures' JSON.
pub const SCHEMA: &str = "heaptoll-locality/1";
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
pub struct Request {
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
    /// Working sets over windows of so many references of the program; as short as can be drawn without it.
    pub window: Option<u64>,
    /// Bytes that the simulators of one process may take; what comes after is only counted.
    pub memory_limit_bytes: u64,
    /// Caches that tables have columns for, bytes, ascending.
    pub caches_bytes: Vec<u64>,
    /// Memories in the table of page faults besides parts of what the program touches, bytes.
    pub memories_bytes: Vec<u64>,
}

/// What was simulated.
pub struct Findings {
    /// The figures.
    pub figures: Figures,
    /// How the runs ended.
    pub ending: Ending,
    caches_bytes: Vec<u64>,
    facts: Vec<(String, String)>,
    command: Vec<String>,
}

impl Findings {
    /// The document that shows it.
    pub fn document(&self) -> Document {
        let command = shell_command(&self.command);
        document::document(&self.figures, &self.caches_bytes, self.facts.clone(), command)
    }

    /// Writes callgrind's files into a folder, one for each program and manager; their names.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn write_callgrind(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let programs = self.figures.programs.iter();
        let rows = programs.flat_map(|one| one.study.rows.iter().map(move |row| (one, row)));
        let written = rows.map(|(program, row)| {
            let file = callgrind::file(program, row);
            file.write(folder, &program.program, &row.about.manager).map_err(Failure::Report)
        });
        written.collect()
    }

    /// Whether some figures are not of a whole run.
    pub fn is_cut_short(&self) -> bool {
        let mut rows = self.figures.programs.iter().flat_map(|one| &one.study.rows);
        rows.any(|row| row.about.cut_short.is_some())
    }
}

/// Runs of one program, the baseline first.
struct Runs {
    program: String,
    command: Vec<String>,
    runs: Vec<(RunInfo, ImageResult)>,
}

/// Runs every program under every manager, its references through the simulators.
///
/// # Errors
/// Line, page, caches or latencies that no simulator takes; see also [`plan`] and [`execute`].
pub fn run(request: &Request, context: &Context) -> Result<Findings, Failure> {
    let (machine, machine_origin) =
        simulated_machine::choose(request.cache.as_deref(), request.latency.as_deref())
            .map_err(Failure::Usage)?;
    let settings = settings(request);
    settings.check().map_err(|error| Failure::Usage(error.to_string()))?;
    let mut plan = plan(&request.traced, context)?;
    let plans = simulations(request, &plan, &settings, &machine)?;
    let mut all_runs: Vec<Runs> = Vec::new();
    let options = Options { references: true, ..Options::default() };
    let ending = execute(
        &mut plan,
        context,
        &options,
        |cell, _| ImageSimulator::new(&plans[&cell.program.name]),
        |cell, run| {
            let Some((about, result)) = one(cell, run) else { return traced::Figures::default() };
            let kept = locality(&result, &machine, request.sampling);
            runs_of(&mut all_runs, cell).push((about, result));
            traced::Figures { locality: Some(kept), ..traced::Figures::default() }
        },
    )?;
    let figures = Figures {
        complete: ending != Ending::Interrupted,
        pinned: request.traced.pin,
        machine_origin: machine_origin.into(),
        baseline: plan.experiment.baseline.clone(),
        programs: studied(request, &machine, all_runs),
    };
    let facts = facts(&plan, &figures);
    let command = plan.experiment.settings.repeat_command;
    Ok(Findings { figures, ending, caches_bytes: request.caches_bytes.clone(), facts, command })
}

/// Settings of the simulators.
fn settings(request: &Request) -> Settings {
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
    request: &Request,
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

/// The runs made of a cell's program.
fn runs_of<'a>(all_runs: &'a mut Vec<Runs>, cell: &Cell) -> &'a mut Vec<(RunInfo, ImageResult)> {
    let place = all_runs.iter().position(|runs| runs.program == cell.program.name);
    let place = place.unwrap_or_else(|| {
        let (program, command) = (cell.program.name.clone(), cell.program.command.clone());
        all_runs.push(Runs { program, command, runs: vec![] });
        all_runs.len() - 1
    });
    &mut all_runs[place].runs
}

/// The runs of each program, compared.
fn studied(request: &Request, machine: &Machine, all_runs: Vec<Runs>) -> Vec<Program> {
    let wanted = StudyOptions {
        caches: request.caches_bytes.clone(),
        memories: request.memories_bytes.clone(),
        window: request.window,
    };
    let program = |runs: Runs| {
        Some(Program {
            study: study(machine, &runs.runs, &wanted)?,
            sampling: request.sampling.map(SamplingFigures::of),
            program: runs.program,
            command: runs.command,
        })
    };
    all_runs.into_iter().filter_map(program).collect()
}

/// The figures of one run: those of the process image that executed most.
fn one(cell: &Cell, run: traced::JudgedRun<ImageSimulator>) -> Option<(RunInfo, ImageResult)> {
    let mut cut_short = run.problem();
    let mut traced = run.traced;
    let key = |image: &heaptoll_reftrace_host::Image| (image.pid, image.number);
    let main = key(&traced.main()?.image);
    let references = |totals: &[Clock; 3]| totals.iter().map(|clock| clock.loads + clock.stores).sum::<u64>();
    let all: u64 = traced.images.iter().map(|image| references(&image.totals)).sum();
    let images = traced.images.len();
    let main = traced.images.swap_remove(traced.images.iter().position(|image| key(&image.image) == main)?);
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
        images,
        others_share: if all > 0 { (all - own) as f64 / all as f64 } else { 0.0 },
        instructions: main.totals.map(|clock| clock.instructions),
        loads: main.totals.map(|clock| clock.loads),
        stores: main.totals.map(|clock| clock.stores),
        warnings,
        cut_short,
    };
    Some((about, simulated))
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

/// Managers, tracer, settings.
fn facts(plan: &traced::Plan, figures: &Figures) -> Vec<(String, String)> {
    let mut facts = plan.manager_facts();
    for (program, manager, why) in plan.refused() {
        facts.push((format!("{manager} on {program}"), format!("left out: {why}")));
    }
    if let Some(one) = figures.programs.first() {
        facts.push(("caches".into(), format!("{} ({})", one.study.machine, figures.machine_origin)));
        facts.push(("line".into(), format!("{} bytes", one.study.line_bytes)));
        facts.push(("page".into(), format!("{} bytes", one.study.page_bytes)));
    }
    facts.extend(plan.tracer_facts());
    facts
}
