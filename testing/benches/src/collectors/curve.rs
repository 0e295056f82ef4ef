//! A collector is a curve and not a point: CPU against memory over heap sizes, ours and Boehm's, both with every free
//! ignored.

use std::path::PathBuf;

use heaptoll_report::document::{Axis, Chart, Document, Form, Section, Series, Table};
use heaptoll_report::{format, html};
use serde::Serialize;

use super::document::{Outputs, make_folder};
use super::envelope::{Cost, MatchedPoint, hold, verdict};
use super::measure::{Effort, ProgramFigures, machine_line};
use super::table::PROGRAMS;
use crate::installation::Installation;
use crate::table::table;
use crate::{Error, Stack};

const OURS: &str = "tithe-collect";
const THEIRS: &str = "bdw-nofree";

/// The command line of `curve`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A program of the catalog; several times for several [default: the nine of the table of peers]
    #[arg(short, long = "program", value_name = "PROGRAM")]
    programs: Vec<String>,
    /// Headrooms of tithe-collect (TITHE_HEADROOM), percent of live bytes
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [15u32, 30, 60, 100, 200, 400])]
    headroom: Vec<u32>,
    /// Divisors of bdw-nofree (GC_FREE_SPACE_DIVISOR): the larger, the smaller its heap
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1u32, 2, 3, 4, 6, 8])]
    divisor: Vec<u32>,
    /// Page of charts to write
    #[arg(long, value_name = "FILE", default_value = "out/collectors.html")]
    html: PathBuf,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    outputs: Outputs,
}

/// A program's curves.
#[derive(Debug, Clone, Serialize)]
struct ProgramCurves {
    program: String,
    glibc: Vec<Cost>,
    ours: Vec<Cost>,
    theirs: Vec<Cost>,
    held: Vec<MatchedPoint>,
    verdict: String,
    not_well: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Figures {
    machine: String,
    size: String,
    repetitions: u32,
    programs: Vec<ProgramCurves>,
}

/// Runs it. False when a program failed at some setting.
///
/// # Errors
/// Nothing could be measured, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let (installation, effort) = (Installation::find()?, &options.effort);
    let stacks = stacks(&installation, options)?;
    let names: Vec<&str> = match options.programs.is_empty() {
        true => PROGRAMS.to_vec(),
        false => options.programs.iter().map(String::as_str).collect(),
    };
    let mut figures = Figures {
        machine: machine_line(),
        size: effort.size.clone(),
        repetitions: effort.repetitions,
        programs: vec![],
    };
    for name in names {
        let measured = effort.measure(&installation, &effort.program(&installation, name)?, &stacks)?;
        figures.programs.push(curves_of(&measured));
        options.outputs.keep("curve", &markdown(&figures), &figures)?;
        let page = html::document::render(&page(&figures))?;
        make_folder(&options.html)?;
        std::fs::write(&options.html, page).map_err(Error::file("write", &options.html))?;
    }
    options.outputs.write("curve", &markdown(&figures), &figures)?;
    Ok(figures.programs.iter().all(|program| program.not_well.is_empty()))
}

/// glibc, then each setting of the two collectors under a name of its own.
fn stacks(installation: &Installation, options: &Options) -> Result<Vec<Stack>, Error> {
    let mut stacks = vec![installation.stack("glibc")?];
    let (ours, theirs) = (installation.stack(OURS)?, installation.stack(THEIRS)?);
    for percent in &options.headroom {
        stacks.push(with(&ours, "TITHE_HEADROOM", percent, &format!("headroom {percent} %")));
    }
    for divisor in &options.divisor {
        stacks.push(with(&theirs, "GC_FREE_SPACE_DIVISOR", divisor, &format!("divisor {divisor}")));
    }
    Ok(stacks)
}

fn with(stack: &Stack, variable: &str, value: &u32, setting: &str) -> Stack {
    let mut stack = stack.clone();
    stack.name = format!("{}, {setting}", stack.name);
    stack.environment.push((variable.into(), value.to_string()));
    stack
}

fn curves_of(measured: &ProgramFigures) -> ProgramCurves {
    let costs = |prefix: &str| -> Vec<Cost> {
        let of = measured.managers.iter().filter_map(|one| {
            let setting = one.manager.strip_prefix(prefix)?.trim_start_matches(", ").to_owned();
            Some(Cost { setting, memory_mib: one.rss_kib? / 1024.0, cpu_s: one.cpu_s? })
        });
        of.collect()
    };
    let (ours, theirs) = (costs(OURS), costs(THEIRS));
    let held = hold(&ours, &theirs);
    ProgramCurves {
        program: measured.program.clone(),
        verdict: verdict(&held, OURS, THEIRS),
        glibc: costs("glibc"),
        ours,
        theirs,
        held,
        not_well: measured
            .managers
            .iter()
            .filter(|one| !one.marks.is_empty())
            .map(|one| format!("{}: {}", one.manager, one.marks.join(", ")))
            .collect(),
    }
}

fn markdown(figures: &Figures) -> String {
    let mut text = format!(
        "{}. Size `{}`, {} interleaved repetitions; medians of CPU seconds less start-up, and of peak RSS. The points are \
         in the JSON file and on the page of charts.\n\n",
        figures.machine, figures.size, figures.repetitions
    );
    let rows: Vec<Vec<String>> = figures
        .programs
        .iter()
        .map(|one| {
            let mut verdict = one.verdict.clone();
            for mark in &one.not_well {
                verdict.push_str(&format!("; not well: {mark}"));
            }
            vec![one.program.clone(), verdict]
        })
        .collect();
    text.push_str(&table(&["program", "verdict"], 2, rows).markdown());
    let all = figures.programs.iter().filter(|one| one.held.iter().all(MatchedPoint::is_below)).count();
    text.push_str(&format!(
        "\n{OURS} lies below on all heap sizes of {all} of {} programs.\n",
        figures.programs.len()
    ));
    text
}

fn page(figures: &Figures) -> Document {
    let notes = [
        "Every free is ignored under both collectors; glibc, which frees, is the single point.".to_owned(),
        "Each point is a heap size: medians of CPU seconds less start-up, and of peak resident memory."
            .to_owned(),
        format!(
            "At each heap size of {THEIRS}, {OURS} is read at the same memory, on the line between its settings."
        ),
    ];
    let front = Section { text: notes.into(), ..Section::default() };
    Document {
        title: "Collectors: CPU against memory".into(),
        sections: std::iter::once(front).chain(figures.programs.iter().map(section)).collect(),
        facts: vec![
            ("Machine".into(), figures.machine.clone()),
            (
                "Plan".into(),
                format!("size {}, {} interleaved repetitions", figures.size, figures.repetitions),
            ),
        ],
        command: format!(
            "heaptoll-bench collectors curve --size {} -n {}",
            figures.size, figures.repetitions
        ),
        palette: ["glibc", OURS, THEIRS].map(String::from).into(),
        ..Document::default()
    }
}

/// The curves of one program, and their points in a table.
fn section(one: &ProgramCurves) -> Section {
    let curves = [("glibc", &one.glibc), (OURS, &one.ours), (THEIRS, &one.theirs)];
    let curves = curves.map(|(name, costs)| {
        let mut costs = costs.clone();
        costs.sort_by(|a, b| a.memory_mib.total_cmp(&b.memory_mib));
        (name, costs)
    });
    let series = curves.iter().map(|(name, costs)| Series {
        name: (*name).into(),
        points: costs.iter().map(|cost| (cost.memory_mib, cost.cpu_s)).collect(),
        labels: costs
            .iter()
            .map(|cost| format!("{}\n{:.4} MiB, {:.4} s", cost.setting, cost.memory_mib, cost.cpu_s))
            .collect(),
        ..Series::default()
    });
    let all = || curves.iter().flat_map(|(_, costs)| costs);
    let chart = Chart {
        title: "CPU against memory".into(),
        caption: "Lower and further left is cheaper.".into(),
        form: Form::Joined,
        x: Axis::spread("peak RSS, MiB", all().map(|cost| cost.memory_mib)),
        y: Axis::spread("CPU, s", all().map(|cost| cost.cpu_s)),
        series: series.collect(),
    };
    let rows = curves.iter().flat_map(|(name, costs)| costs.iter().map(move |cost| (*name, cost)));
    let table = Table::of(rows)
        .text("manager", |(name, _)| *name)
        .text("setting", |(_, cost)| cost.setting.clone())
        .figure("peak RSS, MiB", |(_, cost)| format::significant(cost.memory_mib))
        .figure("CPU, s", |(_, cost)| format::significant(cost.cpu_s));
    Section::new(&one.program).state(format!("{}.", one.verdict)).with(chart).with(table.parts(""))
}
