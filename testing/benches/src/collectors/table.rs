//! Programs under allocators and collectors: CPU and memory over glibc's, and the targets of Tithe's modes.

use heaptoll_statistics::geometric_mean;
use serde::Serialize;

use super::document::Outputs;
use super::measure::{Effort, Measured, ProgramFigures, machine_line, stacks};
use super::targets::{TARGETS, excess, target, verdict};
use crate::Error;
use crate::installation::Installation;
use crate::table::table;

/// The programs of the table of peers that the catalog has.
pub const PROGRAMS: [&str; 9] =
    ["cfrac", "espresso", "gawk", "ghostscript", "lua", "make", "perl", "python", "sqlite"];
const MANAGERS: [&str; 7] =
    ["tithe-explicit", "tithe", "tithe-collect", "bdw", "bdw-nofree", "mimalloc3", "snmalloc"];
const DASH: &str = "–";

/// The command line of `table`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A program of the catalog; several times for several [default: the nine of the table of peers]
    #[arg(short, long = "program", value_name = "PROGRAM")]
    programs: Vec<String>,
    /// A manager by name, group or path; several times for several [default: the modes of tithe, bdw in both modes,
    /// mimalloc3, snmalloc]
    #[arg(short, long = "manager", value_name = "MANAGER")]
    managers: Vec<String>,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    outputs: Outputs,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Figures {
    machine: String,
    size: String,
    repetitions: u32,
    programs: Vec<ProgramFigures>,
    summary: Vec<Summary>,
}

/// A manager over all programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Summary {
    manager: String,
    /// Programs with figures.
    programs: usize,
    cpu: Option<f64>,
    excess: Option<f64>,
    rss: Option<f64>,
    anonymous: Option<f64>,
    /// The most expensive in CPU, and in excess memory.
    worst_cpu: Option<(String, f64)>,
    worst_excess: Option<(String, f64)>,
}

/// Runs it. False when a program failed under a manager.
///
/// # Errors
/// Nothing could be measured, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let (installation, effort) = (Installation::find()?, &options.effort);
    let stacks = stacks(&installation, &options.managers, &MANAGERS)?;
    let names: Vec<&str> = match options.programs.is_empty() {
        true => PROGRAMS.to_vec(),
        false => options.programs.iter().map(String::as_str).collect(),
    };
    let mut figures = Figures {
        machine: machine_line(),
        size: effort.size.clone(),
        repetitions: effort.repetitions,
        programs: vec![],
        summary: vec![],
    };
    for name in names {
        let program = effort.program(&installation, name)?;
        figures.programs.push(effort.measure(&installation, &program, &stacks)?);
        figures.summary = summaries(&figures.programs);
        // After each program, so that a later failure loses nothing.
        options.outputs.keep("table", &markdown(&figures), &figures)?;
    }
    options.outputs.write("table", &markdown(&figures), &figures)?;
    Ok(figures.programs.iter().flat_map(|program| &program.managers).all(|one| one.marks.is_empty()))
}

/// A manager's figures over those of the baseline, on one program.
struct Over {
    cpu: Option<f64>,
    excess: Option<f64>,
    rss: Option<f64>,
    anonymous: Option<f64>,
}

fn over(program: &ProgramFigures, one: &Measured) -> Over {
    let base = program.managers.first().filter(|base| base.manager != one.manager);
    let kib = |kib: fn(&Measured) -> Option<f64>| Some((kib(one)?, kib(base?)?));
    let rss = kib(|one| one.rss_kib);
    Over {
        cpu: one.cpu.map(|interval| interval.ratio),
        excess: rss.map(|(ours, base)| excess(ours, base)),
        rss: rss.map(|(ours, base)| ours / base),
        anonymous: kib(|one| one.anonymous_kib).map(|(ours, base)| ours / base),
    }
}

fn names(programs: &[ProgramFigures]) -> Vec<&str> {
    let all = programs.first().map(|program| program.managers.as_slice()).unwrap_or_default();
    all.iter().skip(1).map(|one| one.manager.as_str()).collect()
}

fn summaries(programs: &[ProgramFigures]) -> Vec<Summary> {
    let summary = |manager: &&str| {
        let all: Vec<(&str, Over)> = programs
            .iter()
            .filter_map(|program| Some((program.program.as_str(), over(program, program.of(manager)?))))
            .collect();
        let mean = |figure: fn(&Over) -> Option<f64>| {
            geometric_mean(all.iter().filter_map(|(_, over)| figure(over)))
        };
        let worst = |figure: fn(&Over) -> Option<f64>| {
            let found = all.iter().filter_map(|(name, over)| Some((name.to_string(), figure(over)?)));
            found.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        Summary {
            manager: manager.to_string(),
            programs: all.iter().filter(|(_, over)| over.cpu.is_some()).count(),
            cpu: mean(|over| over.cpu),
            excess: mean(|over| over.excess),
            rss: mean(|over| over.rss),
            anonymous: mean(|over| over.anonymous),
            worst_cpu: worst(|over| over.cpu),
            worst_excess: worst(|over| over.excess),
        }
    };
    names(programs).iter().map(summary).collect()
}

fn ratio(value: Option<f64>) -> String {
    value.map_or(DASH.into(), heaptoll_units::ratio)
}

fn markdown(figures: &Figures) -> String {
    let programs = &figures.programs;
    let managers = names(programs);
    let mut text = format!(
        "{}. Size `{}`, {} interleaved repetitions, ratios to glibc.\n\n",
        figures.machine, figures.size, figures.repetitions
    );
    text.push_str(&means(&figures.summary));
    text.push_str("\n**What the modes of tithe have to reach**\n\n");
    text.push_str(&reached(programs, &figures.summary));
    let by_program = |title: &str, cell: &dyn Fn(&ProgramFigures, &Measured) -> String| {
        let rows: Vec<Vec<String>> = programs
            .iter()
            .map(|program| {
                let cells = managers.iter().map(|m| program.of(m).map_or(DASH.into(), |m| cell(program, m)));
                std::iter::once(program.program.clone()).chain(cells).collect()
            })
            .collect();
        let headings = [&["program"][..], &managers].concat();
        format!("\n**{title}**\n\n{}", table(&headings, 1, rows).markdown())
    };
    text.push_str(&by_program("CPU / excess memory", &|program, one| {
        let over = over(program, one);
        let marks = if one.marks.is_empty() { String::new() } else { format!(" ({})", one.marks.join(", ")) };
        format!("{} / {}{marks}", ratio(over.cpu), ratio(over.excess))
    }));
    text.push_str(&by_program("Collections / longest pause, ms", &|_, one| {
        one.collections.map_or(DASH.into(), |collections| {
            format!("{:.0} / {:.2}", collections.count, collections.pause_max_s * 1e3)
        })
    }));
    text.push_str(&outputs(programs));
    text
}

fn means(summary: &[Summary]) -> String {
    let worst = |worst: &Option<(String, f64)>| {
        worst.as_ref().map_or(DASH.into(), |(name, value)| format!("{value:.2} {name}"))
    };
    let rows: Vec<Vec<String>> = summary
        .iter()
        .map(|one| {
            vec![
                one.manager.clone(),
                one.programs.to_string(),
                ratio(one.cpu),
                ratio(one.excess),
                ratio(one.rss),
                ratio(one.anonymous),
                worst(&one.worst_cpu),
                worst(&one.worst_excess),
            ]
        })
        .collect();
    let first = [
        "geometric means",
        "programs",
        "CPU",
        "excess memory",
        "peak RSS",
        "anonymous",
        "worst CPU",
        "worst excess",
    ];
    table(&first, 1, rows).markdown()
}

/// Each target with its figure, and whether every program beats Boehm's collector with frees ignored.
fn reached(programs: &[ProgramFigures], summary: &[Summary]) -> String {
    let mut rows = vec![];
    let mut line = |what: String, value: f64, limit: f64| {
        rows.push(vec![what, format!("{value:.3}"), format!("{limit:.2}"), verdict(value, limit)]);
    };
    for one in summary {
        let Some(target) = target(&one.manager) else { continue };
        let name = &one.manager;
        if let (Some(cpu), Some(memory)) = (one.cpu, one.excess) {
            line(format!("{name}: CPU, mean"), cpu, target.mean.cpu);
            line(format!("{name}: excess memory, mean"), memory, target.mean.memory);
        }
        // The program that is nearest to its own limit, or furthest above it.
        let nearest = |figure: fn(&Over) -> Option<f64>, memory: bool| {
            programs
                .iter()
                .filter_map(|program| {
                    let limit = target.of_program(&program.program);
                    let limit = if memory { limit.memory } else { limit.cpu };
                    Some((&program.program, figure(&over(program, program.of(name)?))?, limit))
                })
                .max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)))
        };
        if let Some((program, value, limit)) = nearest(|over| over.cpu, false) {
            line(format!("{name}: CPU, single program ({program})"), value, limit);
        }
        if let Some((program, value, limit)) = nearest(|over| over.excess, true) {
            line(format!("{name}: excess memory, single program ({program})"), value, limit);
        }
    }
    let mut text = table(&["target", "reached", "limit", "verdict"], 1, rows).markdown();
    for (what, figure) in [
        ("CPU", (|one| one.cpu_s) as fn(&Measured) -> Option<f64>),
        ("peak RSS", |one: &Measured| one.rss_kib),
    ] {
        let lost: Vec<String> = programs
            .iter()
            .filter_map(|program| {
                let ours = figure(program.of(TARGETS[2].manager)?)?;
                let theirs = figure(program.of("bdw-nofree")?)?;
                (ours >= theirs).then(|| format!("{} ({:.2}x)", program.program, ours / theirs))
            })
            .collect();
        let measured = |manager| programs.iter().any(|program| program.of(manager).is_some());
        if measured(TARGETS[2].manager) && measured("bdw-nofree") {
            let verdict = match lost.is_empty() {
                true => "pass: less on every program".into(),
                false => format!("miss: not less on {}", lost.join(", ")),
            };
            text.push_str(&format!("\ntithe-collect against bdw-nofree, {what}: {verdict}.\n"));
        }
    }
    text
}

fn outputs(programs: &[ProgramFigures]) -> String {
    let wrong: Vec<String> = programs
        .iter()
        .flat_map(|program| program.managers.iter().map(move |one| (program, one)))
        .filter(|(_, one)| !one.marks.is_empty())
        .map(|(program, one)| format!("{} under {}: {}", program.program, one.manager, one.marks.join(", ")))
        .collect();
    match wrong.is_empty() {
        true => "\nEvery run ended well and printed what it prints under glibc.\n".into(),
        false => format!("\nNot well: {}.\n", wrong.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_statistics::Interval;

    use super::*;

    fn one(manager: &str, cpu: Option<f64>, rss_kib: f64) -> Measured {
        let interval = |ratio| Interval { ratio, low: ratio, high: ratio, differs: true, pairs: 5 };
        Measured {
            manager: manager.into(),
            runs: 5,
            cpu_s: Some(cpu.unwrap_or(1.0)),
            wall_s: None,
            cpu: cpu.map(interval),
            wall: None,
            rss_kib: Some(rss_kib),
            anonymous_kib: None,
            collections: None,
            marks: vec![],
        }
    }

    fn program(name: &str, collect: (f64, f64), nofree: (f64, f64)) -> ProgramFigures {
        let managers = vec![
            one("glibc", None, 10240.0),
            one("tithe-collect", Some(collect.0), collect.1),
            one("bdw-nofree", Some(nofree.0), nofree.1),
        ];
        ProgramFigures { program: name.into(), managers }
    }

    #[test]
    fn targets_are_judged_and_losses_to_boehm_named() {
        let programs = [
            program("make", (2.9, 10240.0), (6.5, 20480.0)),
            program("perl", (1.6, 12288.0), (1.5, 20480.0)),
        ];
        let summary = summaries(&programs);
        assert_eq!(summary[0].worst_cpu, Some(("make".into(), 2.9)));
        assert!((summary[0].cpu.expect("a mean") - (2.9f64 * 1.6).sqrt()).abs() < 1e-9);
        let text = reached(&programs, &summary).split_whitespace().collect::<Vec<_>>().join(" ");
        // make's own limit is 3.0, so perl is the one that is furthest off.
        assert!(text.contains("single program (perl) | 1.600 | 1.50 | miss by 6.7 %"), "{text}");
        assert!(text.contains("CPU: miss: not less on perl (1.07x)"), "{text}");
        assert!(text.contains("peak RSS: pass"), "{text}");
    }
}
