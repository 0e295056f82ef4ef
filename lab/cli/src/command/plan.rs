//! `heaptoll lab shards plan`: an experiment cut into shards, for many machines.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use heaptoll::duration::duration;
use heaptoll::entry::{Command, writes};
use heaptoll::gate_programs::ProgramArguments;
use heaptoll::protocol_arguments::{FIXED, Paired, Seeded};
use heaptoll::run_settings::RunSettings;
use heaptoll::session::Session;
use heaptoll::terminal;
use heaptoll::workload_args::WorkloadArgs;
use heaptoll::written_files::writable;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::cluster::planning::{self, Cut};
use heaptoll_laboratory::cluster::{ClusterError, MachineClass, Plan};
use heaptoll_report::ReportError;
use heaptoll_report::files::write_atomically;
use heaptoll_report::format::{and_list, plural, shell_path};
use heaptoll_units::took;

/// Cut an experiment into shards that many machines measure.
///
/// Takes the arguments of `heaptoll run`, proves the managers, and runs each program once under each to time a
/// repetition. The plan then lists shards, the digests of all files that take part, and the class of machines for
/// each shard. A shard is whole repetitions of one program under all managers, so every ratio comes from one machine.
/// `heaptoll lab shards work` measures a shard, and `merge` makes one experiment.
///
/// `heaptoll lab shards plan gate` cuts a gate: two builds of a program, with one verdict over all shards.
///
/// Exit status: 0 all well; 2 bad request; 130 interrupted.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  heaptoll lab shards plan -o exp.plan -n 40 --all\n  \
    heaptoll lab shards work exp.plan --shard 0 -o shards\n  \
    heaptoll lab shards merge all.db shards\n  \
    srun --exclusive heaptoll lab shards plan --machine -o node.json      (which machine is a compute node?)\n  \
    heaptoll lab shards plan -o exp.plan --class zen=node.json -p cfrac"
)]
pub struct Arguments {
    /// The plan to write; with --machine, the class of machines
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Option<PathBuf>,
    #[command(flatten)]
    cut: CutArguments,
    /// Write the class of this machine, and plan nothing
    #[arg(long, conflicts_with_all = ["CutArguments", "repetitions", "RunSettings", "Programs", "ServerArgs"],
        conflicts_with_all = FIXED)]
    machine: bool,
    #[command(flatten)]
    settings: RunSettings,
    #[command(flatten)]
    paired: Paired,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(subcommand)]
    what: Option<What>,
}

/// The shards.
#[derive(Debug, Args)]
struct CutArguments {
    /// Approximate time of a shard; it has at least one repetition
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    shard_time: f64,
    /// A class of machines that measures the experiment, from a file of --machine; each class measures all of it and
    /// is reported separately [default: the class of this machine]
    #[arg(long, value_name = "[NAME=]FILE")]
    class: Vec<String>,
}

impl CutArguments {
    /// How to cut, as the library takes it.
    fn cut(&self) -> Result<Cut, Failure> {
        let classes = self.class.iter().map(|text| read_class(text)).collect::<Result<_, _>>()?;
        Ok(Cut { shard_s: self.shard_time, classes })
    }
}

/// Other plans.
#[derive(Debug, Subcommand)]
enum What {
    Gate(Box<GateArguments>),
}

/// Cut a gate into shards that many machines measure: two builds of a program, one verdict.
///
/// Takes the programs and limits of `heaptoll gate`. A shard is whole repetitions of both builds on one node. One
/// node of each class also makes the exact counts and recordings of each program. `heaptoll lab shards work` measures
/// a shard, `merge` makes one file, and `heaptoll gate --merged FILE` decides with the plan's limits. The number of
/// repetitions is fixed, because no shard sees the rows of another. Commits (--base-ref) are not built: build both in
/// a folder that all nodes see.
///
/// Exit status: 0 all well; 2 bad request; 130 interrupted.
#[derive(Debug, Args)]
#[command(mut_arg("expect_status", |arg| arg.help("Exit status of a good run [default: 0, or the file's]")))]
#[command(
    after_help = "Examples:\n  heaptoll lab shards plan gate -o gate.plan -n 60 --base ./old --new ./new -- in.xml\n  \
    heaptoll lab shards work gate.plan --shard 0 -o shards\n  \
    heaptoll lab shards merge gate.db shards\n  \
    heaptoll gate --merged gate.db --strict"
)]
struct GateArguments {
    /// The plan to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    cut: CutArguments,
    /// Timed repetitions on each class of machines; below 6 no limit on a time can be decided
    #[arg(short = 'n', long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,
    #[command(flatten)]
    programs: ProgramArguments,
    #[command(flatten)]
    seeded: Seeded,
}

impl Command for Arguments {
    const NAME: &'static str = "lab shards plan";
    const FIRST: &'static [&'static str] =
        &["base", "new", "command", "base_ref", "limit", "repetitions", "shard_time", "class"];
    writes!(of_format: Plan);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        if let Some(What::Gate(gate)) = &arguments.what {
            return plan_gate(gate);
        }
        let output = arguments
            .output
            .as_ref()
            .ok_or_else(|| Failure::Usage("no plan to write: give -o FILE".into()))?;
        writable(output)?;
        if arguments.machine {
            return write_class(output);
        }
        let cut = arguments.cut.cut()?;
        let session = Session::begin()?;
        let request = arguments.settings.request(&arguments.workload, &arguments.paired);
        keep(&planning::plan(&request, &cut, &session.context())?, output)
    }
}

fn plan_gate(arguments: &GateArguments) -> Result<u8, Failure> {
    writable(&arguments.output)?;
    let cut = arguments.cut.cut()?;
    let request = arguments.programs.request(&arguments.seeded, arguments.repetitions)?;
    let session = Session::begin()?;
    keep(&planning::plan_gate(&request, &cut, &session.context())?, &arguments.output)
}

/// Writes a plan, and prints what to do with it.
fn keep(plan: &Plan, output: &Path) -> Result<u8, Failure> {
    plan.write(output)?;
    terminal::print(&summary(plan, output))?;
    Ok(0)
}

/// What the plan is, and what to do with it.
fn summary(plan: &Plan, path: &Path) -> String {
    let programs = plural(plan.experiment.programs.len(), "program");
    let repetitions = plan.experiment.settings.repetitions / plan.classes.len().max(1) as u32;
    let seconds: Vec<f64> = plan.shards.iter().map(|shard| shard.estimated_s).collect();
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    let classes: Vec<String> = plan.classes.iter().map(|class| class.name.clone()).collect();
    let work = format!("heaptoll lab shards work {} -o shards --shard", shell_path(path));
    let arrays = classes.iter().map(|class| {
        let shards = (0..).zip(&plan.shards).filter(|(_, shard)| shard.part.class == *class);
        let array = ranges(shards.map(|(number, _)| number));
        format!("All of {class} on Slurm: sbatch --array={array} --exclusive --wrap '{work} $SLURM_ARRAY_TASK_ID'\n")
    });
    let arrays: String = arrays.collect();
    format!(
        "{programs}, {} of each, on {}: {} of up to {}, {} in all.\n\
         Measure one with: {work} 0\n{arrays}",
        plural(repetitions as usize, "repetition"),
        and_list(&classes),
        plural(plan.shards.len(), "shard"),
        took(longest),
        took(seconds.iter().sum()),
    )
}

/// `0-3,7` for 0, 1, 2, 3 and 7: numbers as `sbatch --array` takes them.
fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

fn write_class(path: &Path) -> Result<u8, Failure> {
    let encoded = |error: serde_json::Error| ReportError::Encode { form: "JSON", detail: error.to_string() };
    let text = serde_json::to_string_pretty(&MachineClass::here()).map_err(encoded)?;
    write_atomically(path, |out| {
        writeln!(out, "{text}").map_err(|source| ReportError::Stream { form: "JSON", source })
    })?;
    Ok(0)
}

/// A class of a file, under the name that is given with it.
fn read_class(text: &str) -> Result<MachineClass, Failure> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) if !name.contains('/') => (Some(name), Path::new(path)),
        _ => (None, Path::new(text)),
    };
    let refused = |error: ClusterError| Failure::Refused(Box::new(error));
    let read = std::fs::read_to_string(path)
        .map_err(|cause| refused(ClusterError::Read { path: path.to_path_buf(), cause }))?;
    let class: MachineClass = serde_json::from_str(&read).map_err(|error| {
        Failure::Usage(format!(
            "--class {}: {error}; `heaptoll lab shards plan --machine -o FILE` writes the class of a machine",
            path.display()
        ))
    })?;
    let name = name.map_or_else(|| class.name.clone(), str::to_owned);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
        return Err(Failure::Usage(format!(
            "--class {name}: a class is named by letters, digits, dashes and dots"
        )));
    }
    Ok(MachineClass { name, ..class })
}
