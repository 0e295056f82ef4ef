//! Threads that allocate: how much more two do than one, and collectors compared with the allocators that are best at
//! it.

use serde::Serialize;

use super::document::Outputs;
use super::measure::{Effort, ProgramFigures, machine_line, stacks};
use crate::Error;
use crate::installation::Installation;
use crate::table::table;

/// One thread and two doing the same work in all, and a pair of which one allocates and the other frees.
const ONE: &str = "larson:1-thread";
const TWO: &str = "larson";
const EXCHANGE: &str = "exchange";
const MANAGERS: [&str; 7] =
    ["mimalloc3", "snmalloc", "tithe-explicit", "tithe", "tithe-collect", "bdw", "bdw-nofree"];
const DASH: &str = "–";

/// The command line of `threads`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A manager by name, group or path; several times for several [default: mimalloc3, snmalloc, the modes of tithe,
    /// bdw in both modes]
    #[arg(short, long = "manager", value_name = "MANAGER")]
    managers: Vec<String>,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Debug, Serialize)]
struct Figures {
    machine: String,
    size: String,
    repetitions: u32,
    programs: Vec<ProgramFigures>,
}

/// Runs it. False when a program failed under a manager.
///
/// # Errors
/// Nothing could be measured, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let (installation, effort) = (Installation::find()?, &options.effort);
    let stacks = stacks(&installation, &options.managers, &MANAGERS)?;
    let mut programs = vec![];
    for name in [ONE, TWO, EXCHANGE] {
        let program = effort.program(&installation, name)?;
        programs.push(effort.measure(&installation, &program, &stacks)?);
    }
    let figures = Figures {
        machine: machine_line(),
        size: effort.size.clone(),
        repetitions: effort.repetitions,
        programs,
    };
    options.outputs.write("threads", &markdown(&figures), &figures)?;
    Ok(figures.programs.iter().flat_map(|program| &program.managers).all(|one| one.marks.is_empty()))
}

/// Elapsed seconds of a manager on a program.
fn wall(programs: &[ProgramFigures], program: &str, manager: &str) -> Option<f64> {
    programs.iter().find(|one| one.program == program)?.of(manager)?.wall_s
}

/// How often as much per second `ours` does as `theirs`.
fn throughput(programs: &[ProgramFigures], program: &str, ours: &str, theirs: &str) -> Option<f64> {
    Some(wall(programs, program, theirs)? / wall(programs, program, ours)?)
}

/// What two threads could do over one, by their CPU time, if nothing else wanted the processors: on a busy machine the
/// elapsed time shows more about the other processes.
fn speed_up_by_cpu(programs: &[ProgramFigures], manager: &str) -> Option<f64> {
    let cpu = |program: &str| programs.iter().find(|one| one.program == program)?.of(manager)?.cpu_s;
    Some(2.0 * cpu(ONE)? / cpu(TWO)?)
}

/// Two threads' throughput over one's.
fn speed_up(programs: &[ProgramFigures], manager: &str) -> Option<f64> {
    Some(wall(programs, ONE, manager)? / wall(programs, TWO, manager)?)
}

fn markdown(figures: &Figures) -> String {
    let programs = &figures.programs;
    let managers: Vec<&str> = programs
        .first()
        .map(|program| program.managers.iter().map(|one| one.manager.as_str()).collect())
        .unwrap_or_default();
    let number = |value: Option<f64>| value.map_or(DASH.into(), |value| format!("{value:.2}"));
    let marks = |manager: &str| {
        let of = programs.iter().filter_map(|program| program.of(manager));
        of.flat_map(|one| one.marks.clone()).collect::<Vec<_>>().join(", ")
    };
    let rows: Vec<Vec<String>> = managers
        .iter()
        .map(|manager| {
            vec![
                (*manager).into(),
                number(wall(programs, ONE, manager)),
                number(wall(programs, TWO, manager)),
                number(speed_up(programs, manager)),
                number(speed_up_by_cpu(programs, manager)),
                number(throughput(programs, TWO, manager, "glibc")),
                number(wall(programs, EXCHANGE, manager)),
                number(throughput(programs, EXCHANGE, manager, "glibc")),
                marks(manager),
            ]
        })
        .collect();
    let headings = [
        "manager",
        "larson, 1 thread, s",
        "2 threads, s",
        "2 over 1",
        "the same by CPU",
        "2 threads over glibc",
        "exchange, 2 threads, s",
        "over glibc",
        "not well",
    ];
    format!(
        "{}. Size `{}`, {} interleaved repetitions; elapsed seconds are medians less start-up, the work is the same with \
         one thread and with two, and ratios are of throughput. *By CPU* is what two threads could do on idle processors.\n\n{}\n{}",
        figures.machine,
        figures.size,
        figures.repetitions,
        table(&headings, 1, rows).markdown(),
        reached(programs)
    )
}

/// The targets: two threads over one, the explicit mode over the better of two, the collecting mode over Boehm's.
fn reached(programs: &[ProgramFigures]) -> String {
    let mut rows = vec![];
    let mut line = |what: String, value: Option<f64>, limit: f64| {
        let Some(value) = value else { return };
        let verdict = if value >= limit {
            "pass".into()
        } else {
            format!("miss by {:.1} %", (1.0 - value / limit) * 100.0)
        };
        rows.push(vec![what, format!("{value:.2}"), format!("{limit:.2}"), verdict]);
    };
    for manager in ["tithe-explicit", "tithe", "tithe-collect"] {
        line(format!("{manager}: two threads over one (larson)"), speed_up(programs, manager), 1.8);
    }
    for program in [TWO, EXCHANGE] {
        let best = ["mimalloc3", "snmalloc"]
            .into_iter()
            .filter_map(|name| throughput(programs, program, "tithe-explicit", name))
            .min_by(f64::total_cmp);
        line(format!("tithe-explicit over the better of mimalloc3 and snmalloc ({program})"), best, 0.9);
        let collect = throughput(programs, program, "tithe-collect", "bdw-nofree");
        line(format!("tithe-collect over bdw-nofree ({program})"), collect, 5.0);
    }
    table(&["target", "reached", "at least", "verdict"], 1, rows).markdown()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::measure::Measured;

    fn program(name: &str, walls: &[(&str, f64)]) -> ProgramFigures {
        let one = |(manager, wall): &(&str, f64)| Measured {
            manager: (*manager).into(),
            runs: 1,
            cpu_s: None,
            wall_s: Some(*wall),
            cpu: None,
            wall: None,
            rss_kib: None,
            anonymous_kib: None,
            collections: None,
            marks: vec![],
        };
        ProgramFigures { program: name.into(), managers: walls.iter().map(one).collect() }
    }

    #[test]
    fn throughput_is_held_against_the_better_of_two() {
        let programs = [
            program(ONE, &[("tithe-explicit", 2.0)]),
            program(TWO, &[("tithe-explicit", 1.0), ("mimalloc3", 0.8), ("snmalloc", 1.2)]),
        ];
        assert_eq!(speed_up(&programs, "tithe-explicit"), Some(2.0));
        let text = reached(&programs).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("(larson) | 2.00 | 1.80 | pass"), "{text}");
        assert!(text.contains("snmalloc (larson) | 0.80 | 0.90 | miss by 11.1 %"), "{text}");
    }
}
