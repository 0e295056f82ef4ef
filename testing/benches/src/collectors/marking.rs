//! Marking: how fast a large live heap of small objects is marked, by Tithe and by the sweep layer over other managers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use heaptoll_experiment::machine;
use heaptoll_statistics::{geometric_mean, median};

use super::document::Outputs;
use crate::installation::{Installation, dated_line, scratch};
use crate::table::table;
use crate::{Error, Stack, compile};

const SOURCE: &str = include_str!("../../c/marking.c");
const CONTRACT: &str = include_str!("../../../../include/heaptoll.h");
/// Tithe, then the layer over others. One marker each, and no collections but those that are requested.
const TITHE: &str = "tithe-collect,every=1024G,markers=1";
const OTHERS: [&str; 2] = ["sweep,every=1024G,markers=1/mimalloc3", "sweep,every=1024G,markers=1/glibc"];
const ORDERS: [&str; 2] = ["shuffled", "ordered"];
/// The target of marking, MB of live small objects a second a core.
const TARGET_MB_S: f64 = 150.0;

/// The command line of `marking`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Rounds; in each every stack runs once
    #[arg(short = 'n', long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Live objects, MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    live: u32,
    /// Collections in a run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    collections: u32,
    /// Collectors to compare with Tithe, as stacks; several times for several [default: the sweep layer over mimalloc3
    /// and over glibc]
    #[arg(short, long = "manager", value_name = "STACK")]
    managers: Vec<String>,
    #[command(flatten)]
    outputs: Outputs,
}

/// A collection as the program reported it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Collection {
    objects: f64,
    bytes: f64,
    mark_cpu_ns: f64,
    mark_ns: f64,
    cpu_ns: f64,
    ns: f64,
}

/// A stack and an order of the objects.
#[derive(Debug, Clone, PartialEq)]
struct Speed {
    stack: String,
    order: String,
    /// MB of objects marked in a second of processor time, median of rounds.
    mb_s: f64,
    /// The same where the whole collection counts: stopping, marking, sweeping.
    whole_mb_s: f64,
    /// Processor time of marking an object, ns.
    object_ns: f64,
    /// Tithe's speed over this one's, geometric mean over rounds.
    tithe_over: f64,
}

#[derive(Debug)]
struct Figures {
    machine: String,
    live_mib: u32,
    rounds: u32,
    speeds: Vec<Speed>,
}

/// Runs it. False when marking is slower than it has to be, or Tithe's is not the fastest.
///
/// # Errors
/// A stack is not there or does not collect, there is no compiler, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let installation = Installation::find()?;
    let folder = scratch()?;
    let program = compile(folder.path())?;
    let words: Vec<String> = match options.managers.is_empty() {
        true => OTHERS.map(String::from).into(),
        false => options.managers.clone(),
    };
    let mut stacks = vec![installation.stack(TITHE)?];
    for word in &words {
        stacks.push(installation.stack(word)?);
    }
    let mut speeds = vec![];
    for order in ORDERS {
        // By stack and round, the best collection of a run: what disturbs it only makes it slower.
        let mut found: Vec<Vec<Collection>> = vec![vec![]; stacks.len()];
        for round in 0..options.rounds as usize {
            for at in 0..stacks.len() {
                let at = (at + round) % stacks.len();
                let run = collections(&program, &stacks[at], options, order)?;
                let best = run.into_iter().min_by(|a, b| a.mark_cpu_ns.total_cmp(&b.mark_cpu_ns));
                found[at].extend(best);
            }
            eprintln!("{order}: round {} of {}", round + 1, options.rounds);
        }
        speeds
            .extend(stacks.iter().zip(&found).map(|(stack, own)| speed(&stack.name, order, own, &found[0])));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    let machine = dated_line(now, &machine::read());
    let figures = Figures { machine, live_mib: options.live, rounds: options.rounds, speeds };
    options.outputs.write("marking", &markdown(&figures))?;
    Ok(figures.speeds.iter().all(|one| one.mb_s >= TARGET_MB_S && one.tithe_over >= 1.0))
}

fn compile(folder: &Path) -> Result<PathBuf, Error> {
    let contract = folder.join("heaptoll.h");
    std::fs::write(&contract, CONTRACT).map_err(Error::file("write", &contract))?;
    compile::compile(folder, "marking.c", SOURCE, &["-std=gnu11", "-O2", "-fno-builtin", "-ldl"])
}

fn collections(
    program: &Path,
    stack: &Stack,
    options: &Options,
    order: &str,
) -> Result<Vec<Collection>, Error> {
    let failed = |reason: String| Error::failed(format!("marking under {}", stack.name), reason);
    let mut command = Command::new(program);
    command.arg(options.live.to_string()).arg(order).arg(options.collections.to_string());
    command.envs(stack.environment.iter().cloned()).env("LD_PRELOAD", stack.ld_preload());
    let output = command.output().map_err(|cause| failed(cause.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let read: Vec<Collection> = text.lines().filter_map(collection).collect();
    if !output.status.success() || read.len() != options.collections as usize {
        let complained = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{}: {}", output.status, complained.trim_end())));
    }
    Ok(read)
}

fn collection(line: &str) -> Option<Collection> {
    let numbers: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [objects, bytes, mark_cpu_ns, mark_ns, cpu_ns, ns] = numbers[..] else { return None };
    Some(Collection { objects, bytes, mark_cpu_ns, mark_ns, cpu_ns, ns })
}

/// Bytes in a nanosecond are MB in a millisecond.
fn speed(stack: &str, order: &str, own: &[Collection], tithe: &[Collection]) -> Speed {
    let mb_s = |one: &Collection| one.bytes / one.mark_cpu_ns * 1000.0;
    let ratios = tithe.iter().zip(own).map(|(tithe, own)| mb_s(tithe) / mb_s(own));
    Speed {
        stack: stack.into(),
        order: order.into(),
        mb_s: median(&own.iter().map(mb_s).collect::<Vec<f64>>()),
        whole_mb_s: median(&own.iter().map(|one| one.bytes / one.cpu_ns * 1000.0).collect::<Vec<f64>>()),
        object_ns: median(&own.iter().map(|one| one.mark_cpu_ns / one.objects).collect::<Vec<f64>>()),
        tithe_over: geometric_mean(ratios).unwrap_or(f64::NAN),
    }
}

fn markdown(figures: &Figures) -> String {
    let rows: Vec<Vec<String>> = figures
        .speeds
        .iter()
        .map(|one| {
            let fast = if one.mb_s >= TARGET_MB_S { "pass" } else { "miss" };
            let ahead = if one.tithe_over >= 1.0 { "pass" } else { "miss" };
            vec![
                one.stack.clone(),
                one.order.clone(),
                format!("{:.0}", one.mb_s),
                format!("{:.0}", one.whole_mb_s),
                format!("{:.1}", one.object_ns),
                fast.into(),
                if one.tithe_over == 1.0 { "–".into() } else { format!("{:.2}, {ahead}", one.tithe_over) },
            ]
        })
        .collect();
    let headings = [
        "collector",
        "objects",
        "marked, MB/s",
        "collected, MB/s",
        "ns an object",
        &format!("at least {TARGET_MB_S:.0} MB/s"),
        "Tithe over it",
    ];
    format!(
        "{}. {} MiB of live objects of 16 to 64 requested bytes, in one binary tree; {} interleaved rounds, of \
         each run the best collection. MB are 10^6 bytes of objects, seconds are processor time of one marker; *marked* \
         is marking with the reading of roots, *collected* the whole collection. *shuffled*: a node's children are random \
         objects; *ordered*: as they were allocated.\n\n{}",
        figures.machine,
        figures.live_mib,
        figures.rounds,
        table(&headings, 2, rows).markdown()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_of_processor_time_and_ratios_of_rounds() {
        let tithe = collection("1000 50000 100000 200000 150000 300000").expect("a line");
        assert_eq!((tithe.objects, tithe.mark_cpu_ns, tithe.ns), (1000.0, 100_000.0, 300_000.0));
        let slower = Collection { mark_cpu_ns: 200_000.0, cpu_ns: 250_000.0, ..tithe };
        let one = speed("sweep/glibc", "shuffled", &[slower, slower], &[tithe, tithe]);
        assert_eq!((one.mb_s, one.whole_mb_s, one.object_ns), (250.0, 200.0, 200.0));
        assert!((one.tithe_over - 2.0).abs() < 1e-12);
        let figures = Figures { machine: "m".into(), live_mib: 64, rounds: 2, speeds: vec![one] };
        let text = markdown(&figures).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("| sweep/glibc | shuffled | 250 | 200 | 200.0 | pass | 2.00, pass |"),
            "{text}"
        );
        assert_eq!(collection("marking: no collector here"), None);
        assert_eq!(collection("1 2 3"), None);
    }

    #[test]
    fn the_program_compiles_and_rejects_a_manager_that_does_not_collect() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = compile(folder.path()).expect("a compiler");
        let stack = Stack::plain("glibc");
        let options = Options {
            rounds: 1,
            live: 1,
            collections: 1,
            managers: vec![],
            outputs: Outputs { markdown: None },
        };
        let error = collections(&program, &stack, &options, "ordered").expect_err("glibc does not collect");
        assert!(error.to_string().contains("no collector here takes requests"), "{error}");
    }
}
