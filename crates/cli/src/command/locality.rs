//! `heaptoll locality`: what a program's references would do to caches and memories of every size.

use std::collections::HashMap;

use clap::{Args, ValueEnum};
use heaptoll_experiment::observation::LocalityFigures;
use heaptoll_locality::image::{ImageResult, ImageSimulator, Plan};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::{Partial, Sampling, Settings};
use heaptoll_locality::study::{RunInfo, StudyOptions, study};
use heaptoll_reftrace::Clock;
use heaptoll_reftrace_host::Options;
use heaptoll_report::format::shell_command;
use heaptoll_units::size_text;

use self::figures::{Figures, Program, SamplingFigures};
use self::options::{SamplingArg, Sizes};
use crate::documents::DocumentOutputs;
use crate::exit;
use crate::session::Session;
use crate::traced_arguments::{TracedArguments, exit_code};
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::simulated_machine;
use heaptoll_experiments::traced::{self, Cell, Ending, execute, plan};

mod curves;
mod document;
mod figures;
mod options;
mod sections;
mod text;

/// Sizes of caches that tables have columns for.
const SIZES: &str = "16K,64K,256K,1M,4M,16M";
/// Set counts that are simulated, as powers of two: with lines of 64 bytes direct-mapped caches of 2 KiB to 1 MiB, and
/// such of 8 ways of 16 KiB to 8 MiB.
const SETS: std::ops::RangeInclusive<u32> = 5..=14;

/// Whether the program's references are also simulated alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlacementArg {
    /// When there is more than one manager to compare
    Auto,
    /// Always
    Yes,
    /// Never: faster
    No,
}

/// Simulate caches and memories of every size: where does a manager put objects, and what does that cost?
///
/// The program runs unchanged under each manager and under a tracer that reports every data reference; simulators
/// process them in one pass. Shown are the misses of caches of every size, fully associative and with sets, page faults
/// of every size of memory, TLBs, the caches of a named machine with an estimate of the waiting, and working sets over
/// the run, each by the code that made the reference: program, allocator, collector (Figures 4 to 7 of Zorn 1992). With
/// two managers or more the extra misses are split: those caused by the placement of the program's objects, and those
/// of the manager's own code. docs/guide/locality.md explains how.
///
/// Exit status: 0 all well; 1 a run failed or is not whole, or an output file could not be written; 2 the request
/// cannot be carried out; 130 interrupted (what was finished is shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll locality -- gawk -f words.awk words\n  \
    heaptoll locality -m mimalloc3 -m bw16 --html gawk.html -- gawk -f words.awk words\n  \
    heaptoll locality --cache 32K/8,1M/16,32M/16 --latency 14,50,200 -p cfrac\n  \
    heaptoll locality -m kingsley -m bw16 --line 32 --memory 2M -p espresso    (as Zorn had it)")]
pub struct Arguments {
    #[command(flatten)]
    traced: TracedArguments,
    /// Bytes of a cache line
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = options::line, help_heading = "Simulation")]
    line: u64,
    /// Bytes of a page
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = options::page, help_heading = "Simulation")]
    page: u64,
    /// A machine's data caches, nearest first, each SIZE/WAYS or SIZE/WAYS/LINE [default: those of this machine]
    #[arg(long, value_name = "CACHES", help_heading = "Simulation")]
    cache: Option<String>,
    /// Cycles that a reference waits for level 2, level 3, ..., and for memory [default: 14, 50, ... and 200 for
    /// memory]
    #[arg(long, value_name = "CYCLES", help_heading = "Simulation")]
    latency: Option<String>,
    /// Lines followed in fully associative caches of more than 1024 lines: `exact` for all, or a rate such as 1/16,
    /// which takes less memory (not less time) and gives an interval
    #[arg(long, value_name = "RATE", default_value = "exact", help_heading = "Simulation")]
    sample: SamplingArg,
    /// Simulate the program's references alone as well, which separates placement from pollution [default: when
    /// managers are compared]
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = PlacementArg::Auto, hide_default_value = true, help_heading = "Simulation")]
    placement: PlacementArg,
    /// Working sets over windows of so many references of the program [default: as short as can be drawn]
    #[arg(long, value_name = "N", value_parser = options::window, help_heading = "Simulation")]
    window: Option<u64>,
    /// MiB that the simulators of one process may take; what comes after is only counted
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..=1 << 20), help_heading = "Simulation")]
    memory_limit: u64,
    /// Sizes of caches that tables have columns for
    #[arg(long, value_name = "SIZES", default_value = SIZES, help_heading = "Output")]
    sizes: Sizes,
    /// Sizes of memory for the table of page faults, in addition to fractions of what the program touches
    #[arg(long, value_name = "SIZES", help_heading = "Output")]
    memory: Option<Sizes>,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

/// Runs of one program, the baseline first.
struct Runs {
    program: String,
    command: Vec<String>,
    runs: Vec<(RunInfo, ImageResult)>,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    let (machine, machine_origin) =
        simulated_machine::choose(arguments.cache.as_deref(), arguments.latency.as_deref())
            .map_err(Failure::Usage)?;
    let sampling = arguments.sample.sampling();
    let settings = Settings {
        line_bytes: arguments.line,
        page_bytes: arguments.page,
        sets: Some(SETS),
        memory_limit: arguments.memory_limit << 20,
        sampling,
        ..Settings::default()
    };
    settings.check().map_err(|error| Failure::Usage(error.to_string()))?;
    let session = Session::begin()?;
    let context = session.context();
    let mut plan = plan(&arguments.traced.request(), &context)?;
    let alone = |cell: &Cell| match arguments.placement {
        PlacementArg::Yes => true,
        PlacementArg::No => false,
        PlacementArg::Auto => {
            plan.cells.iter().filter(|other| other.program.name == cell.program.name).count() > 1
        }
    };
    let mut plans: HashMap<String, Plan> = HashMap::new();
    for cell in &plan.cells {
        let name = &cell.program.name;
        let one = Plan::new(settings.clone(), machine.clone(), alone(cell));
        plans.insert(name.clone(), one.map_err(|error| Failure::Usage(error.to_string()))?);
    }
    let mut all_runs: Vec<Runs> = Vec::new();
    let options = Options { references: true, ..Options::default() };
    let ending = execute(
        &mut plan,
        &context,
        &options,
        |cell, _| ImageSimulator::new(&plans[&cell.program.name]),
        |cell, run| {
            let Some((about, result)) = one(cell, run) else { return traced::Figures::default() };
            let kept = locality(&result, &machine, sampling);
            let place = all_runs.iter().position(|runs| runs.program == cell.program.name);
            let place = place.unwrap_or_else(|| {
                let (program, command) = (cell.program.name.clone(), cell.program.command.clone());
                all_runs.push(Runs { program, command, runs: vec![] });
                all_runs.len() - 1
            });
            all_runs[place].runs.push((about, result));
            traced::Figures { locality: Some(kept), ..traced::Figures::default() }
        },
    )?;
    let wanted = StudyOptions {
        caches: arguments.sizes.0.clone(),
        memories: arguments.memory.clone().map_or(vec![], |sizes| sizes.0),
        window: arguments.window,
    };
    let programs = all_runs.into_iter().filter_map(|runs| {
        Some(Program {
            study: study(&machine, &runs.runs, &wanted)?,
            sampling: sampling.map(SamplingFigures::of),
            program: runs.program,
            command: runs.command,
        })
    });
    let figures = Figures {
        complete: ending != Ending::Interrupted,
        pinned: !arguments.traced.no_pin,
        machine_origin: machine_origin.into(),
        baseline: plan.experiment.baseline.clone(),
        programs: programs.collect(),
    };
    let command = shell_command(&plan.experiment.settings.repeat_command);
    let document = document::document(&figures, &arguments.sizes.0, facts(&plan, &figures), command);
    let code = arguments.outputs.deliver(&document, "heaptoll-locality/1", &figures)?;
    let rows = figures.programs.iter().flat_map(|one| &one.study.rows);
    let code =
        if rows.filter(|row| row.about.cut_short.is_some()).count() > 0 { exit::TROUBLE } else { code };
    Ok(exit_code(ending, code))
}

/// The figures of one run: those of the process image that executed most.
fn one(cell: &Cell, run: traced::JudgedRun<ImageSimulator>) -> Option<(RunInfo, ImageResult)> {
    let good = run.is_good();
    let mut traced = run.traced;
    let key = |image: &heaptoll_reftrace_host::Image| (image.pid, image.number);
    let main = key(&traced.main()?.image);
    let references = |totals: &[Clock; 3]| totals.iter().map(|clock| clock.loads + clock.stores).sum::<u64>();
    let all: u64 = traced.images.iter().map(|image| references(&image.totals)).sum();
    let images = traced.images.len();
    let main = traced.images.swap_remove(traced.images.iter().position(|image| key(&image.image) == main)?);
    let own = references(&main.totals);
    let simulated = main.sink.finish();
    let mut cut_short = (!good)
        .then(|| run.remarks.first().cloned().unwrap_or_else(|| "it was not traced to its end".into()));
    let mut warnings = run.remarks;
    if let Some(Partial::Memory { limit, unsimulated }) = simulated.profile.partial {
        let why = format!(
            "the simulators needed more than {}: the last {unsimulated} references were only counted; --memory-limit gives \
             more, --sample and a longer --line need less",
            size_text(limit)
        );
        cut_short.get_or_insert(why.clone());
        warnings.push(why);
    }
    if simulated.over_time_partial {
        warnings.push("working sets end before the run does: memory ran out for them".into());
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
    facts.push(("traced by".into(), format!("heaptoll's tracer on Valgrind {}", plan.tracer.version())));
    facts.push(("randomness".into(), if figures.pinned { "pinned" } else { "left alone" }.into()));
    facts
}
