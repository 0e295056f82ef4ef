//! GCBench, which calls its collector directly: linked with Tithe's static library and with Debian's libgc, at equal
//! limits of the heap.

use heaptoll_catalog::Prepared;
use heaptoll_statistics::geometric_mean;
use serde::Serialize;

use super::document::Outputs;
use super::envelope::{Cost, hold, verdict};
use super::measure::{Effort, ProgramFigures, machine_line};
use super::targets;
use crate::installation::Installation;
use crate::table::table;
use crate::{Error, Stack};

const PROGRAM: &str = "gcbench";
/// The variable that selects the build to run: one command for both, so that their runs can be interleaved.
const BINARY: &str = "GCBENCH_BINARY";
/// Time over libgc's at equal memory, at most.
const LIMIT: f64 = 0.7;
const DASH: &str = "–";

/// The command line of `gcbench`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Limits of the heap, MiB [default: 1.25, 1.5, 2, 3 and 4 times what the size needs at least]
    #[arg(long, value_name = "MIB", value_delimiter = ',')]
    heap: Vec<u32>,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    outputs: Outputs,
}

/// Both at one limit.
#[derive(Debug, Clone, Serialize)]
struct Size {
    heap_mib: u32,
    tithe: Option<Cost>,
    libgc: Option<Cost>,
    not_well: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Figures {
    machine: String,
    size: String,
    repetitions: u32,
    sizes: Vec<Size>,
}

/// Runs it. False when a run failed, too little heap among the reasons.
///
/// # Errors
/// Nothing could be measured, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let (installation, effort) = (Installation::find()?, &options.effort);
    let program = effort.program(&installation, PROGRAM)?;
    let sizes = if options.heap.is_empty() { default_sizes(&effort.size) } else { options.heap.clone() };
    // The largest first: it is the baseline, which must not fail.
    let mut descending = sizes.clone();
    descending.sort_unstable_by_key(|mib| std::cmp::Reverse(*mib));
    let stacks: Vec<Stack> = descending
        .iter()
        .flat_map(|mib| [stack(&installation, "libgc", *mib), stack(&installation, "tithe", *mib)])
        .collect::<Result<_, Error>>()?;
    let measured = effort.measure(&installation, &either(program), &stacks)?;
    let figures = Figures {
        machine: machine_line(),
        size: effort.size.clone(),
        repetitions: effort.repetitions,
        sizes: sizes.iter().map(|mib| size(&measured, *mib)).collect(),
    };
    options.outputs.write("gcbench", &markdown(&figures), &figures)?;
    Ok(figures.sizes.iter().all(|size| size.not_well.is_empty()))
}

/// Live at once are the stretch tree or the long-lived one with a short-lived one: about 8, 16 and 32 MiB of nodes and
/// array at the three sizes.
fn default_sizes(size: &str) -> Vec<u32> {
    let least = match size {
        "quick" => 8,
        "demo" => 16,
        _ => 32,
    };
    [5, 6, 8, 12, 16].map(|quarters| least * quarters / 4).into()
}

/// The catalog's entry with the build left open.
fn either(mut program: Prepared) -> Prepared {
    let arguments = program.command.split_off(1);
    program.command =
        ["/bin/sh", "-c", &format!("exec \"${BINARY}\" \"$@\""), PROGRAM].map(String::from).into();
    program.command.extend(arguments);
    program
}

fn name(build: &str, mib: u32) -> String {
    format!("{build} {mib} MiB")
}

fn stack(installation: &Installation, build: &str, mib: u32) -> Result<Stack, Error> {
    let file = if build == "tithe" { "gcbench-tithe" } else { "gcbench-gc" };
    let binary = installation.places.programs().join(file);
    if !binary.is_file() {
        return Err(Error::NotBuilt(binary));
    }
    let limits = match build {
        "tithe" => {
            vec![("TITHE_POLICY", "fixed".into()), ("TITHE_MAX_HEAP", format!("{mib}M"))]
        }
        _ => {
            let bytes = (u64::from(mib) << 20).to_string();
            vec![("GC_INITIAL_HEAP_SIZE", bytes.clone()), ("GC_MAXIMUM_HEAP_SIZE", bytes)]
        }
    };
    let mut environment: Vec<(String, String)> = vec![(BINARY.into(), binary.display().to_string())];
    environment.extend(limits.into_iter().map(|(variable, value)| (variable.into(), value)));
    Ok(Stack { name: name(build, mib), preload: vec![], environment, reports_statistics: false })
}

fn size(measured: &ProgramFigures, mib: u32) -> Size {
    let of = |build: &str| measured.of(&name(build, mib));
    let cost = |build: &str| {
        let one = of(build)?;
        Some(Cost { setting: format!("{mib} MiB"), memory_mib: one.rss_kib? / 1024.0, cpu_s: one.cpu_s? })
    };
    let marks = |build: &'static str| {
        of(build)
            .into_iter()
            .flat_map(move |one| one.marks.iter().map(move |mark| format!("{build}: {mark}")))
    };
    Size {
        heap_mib: mib,
        tithe: cost("tithe"),
        libgc: cost("libgc"),
        not_well: marks("tithe").chain(marks("libgc")).collect(),
    }
}

fn markdown(figures: &Figures) -> String {
    let shown = |cost: &Option<Cost>| {
        cost.as_ref().map_or(DASH.into(), |cost| format!("{:.2} / {:.1}", cost.cpu_s, cost.memory_mib))
    };
    let rows: Vec<Vec<String>> = figures
        .sizes
        .iter()
        .map(|size| {
            let ratio = size.tithe.as_ref().zip(size.libgc.as_ref()).map(|(a, b)| a.cpu_s / b.cpu_s);
            vec![
                format!("{} MiB", size.heap_mib),
                shown(&size.tithe),
                shown(&size.libgc),
                ratio.map_or(DASH.into(), |ratio| format!("{ratio:.2}")),
                size.not_well.join(", "),
            ]
        })
        .collect();
    let headings = ["limit of the heap", "tithe", "libgc", "CPU, tithe over libgc", "not well"];
    let mut text = format!(
        "{}. Size `{}`, {} interleaved repetitions; CPU s / peak RSS MiB.\n\n{}",
        figures.machine,
        figures.size,
        figures.repetitions,
        table(&headings, 1, rows).markdown()
    );
    let costs = |of: fn(&Size) -> &Option<Cost>| -> Vec<Cost> {
        figures.sizes.iter().filter_map(|size| of(size).clone()).collect()
    };
    let held = hold(&costs(|size| &size.tithe), &costs(|size| &size.libgc));
    text.push_str(&format!("\nAt equal peak RSS: {}.\n", verdict(&held, "tithe", "libgc")));
    let ratios = held.iter().filter_map(|one| Some(one.ours_s? / one.theirs_s));
    if let Some(mean) = geometric_mean(ratios) {
        let verdict = targets::verdict(mean, LIMIT);
        text.push_str(&format!(
            "Target: at most {LIMIT} of libgc's time at equal memory; {mean:.2}: {verdict}.\n"
        ));
    }
    text
}
