//! `heaptoll ledger`: where the memory of a program is.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use heaptoll_experiment::places::Places;
use heaptoll_ledger::{EXTRA, Ledger, LedgerError, Point};
use heaptoll_preflight::own_heap_of_trace;
use heaptoll_record::Children;
use heaptoll_report::document::Document;
use heaptoll_report::format::plural;
use heaptoll_trace::Tables;
use serde::Serialize;

use crate::documents::DocumentOutputs;
use crate::exit;
use crate::memory::MemoryArguments;
use crate::recording::{ProgramChoice, RecordingOptions, record};
use crate::terminal;
use crate::workload_args::SizeArg;
use heaptoll_experiments::failure::Failure;

mod coarse;
mod collector;
mod document;
mod groups;
mod over_time;
mod sum;

/// Where the memory of a program is: one sum that closes against its resident set.
///
/// Live bytes, fragmentation, caches, metadata, what a collector has not reclaimed, and what is no heap at all, each
/// with the part that is resident and the part that is only mapped; at the peak, in other snapshots and over time.
/// docs/guide/ledger.md explains how each is known.
///
/// Of a command, the process image with the largest resident set is shown. It runs as under `heaptoll record`.
///
/// Exit status: 0 all well; 1 the program failed, the trace is not whole, or an output file could not be written; 2 the
/// request cannot be carried out, or the trace has nothing to show; 130 stopped before the program ended.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll ledger -m tithe --html perl.html -- perl script.pl\n  \
    heaptoll ledger --program gawk --size demo\n  \
    heaptoll record --ledger -o perl.heaptoll -- perl script.pl && heaptoll ledger perl.heaptoll")]
pub struct Arguments {
    /// A trace that was recorded with --ledger
    #[arg(value_name = "TRACE", required_unless_present_any = ["command", "program"])]
    trace: Option<PathBuf>,
    /// The manager to run over, by name (`heaptoll managers`) or path, with layers in front (`sweep/mimalloc`) and
    /// options after the name (`tithe,heap=32M`) where wanted [default: the program's own]
    #[arg(short, long, value_name = "MANAGER", conflicts_with = "trace")]
    manager: Option<String>,
    /// Keep the trace; those of the program's other processes go to FILE.children [default: a temporary file]
    #[arg(short, long, value_name = "FILE", conflicts_with = "trace")]
    output: Option<PathBuf>,
    /// Overwrite the trace when it exists
    #[arg(short, long, requires = "output")]
    force: bool,
    /// Under a collector: force a collection at every snapshot, to see what it reclaims; this changes the run
    #[arg(long, conflicts_with = "trace")]
    collect: bool,
    /// A program of the catalog (`heaptoll programs`)
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["command", "trace"])]
    program: Option<String>,
    /// Input size of the catalog program [default: full]
    #[arg(long, value_enum, value_name = "SIZE", requires = "program")]
    size: Option<SizeArg>,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "trace")]
    command: Vec<OsString>,
}

/// The figures of the JSON file.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Figures<'a> {
    /// Of snapshots of the process's pages.
    Pages {
        program: &'a str,
        manager: &'a str,
        collector: bool,
        collected: bool,
        /// Number of the snapshot with the largest resident set, and of that with the most live bytes.
        peak: Option<usize>,
        most_live: Option<usize>,
        /// Most requested bytes live in the whole run, whether a snapshot was taken then or not.
        max_live_bytes: Option<u64>,
        #[serde(rename = "moments")]
        snapshots: &'a [heaptoll_ledger::Snapshot],
    },
    /// Of samples of the resident set.
    Coarse { program: &'a str, manager: &'a str, points: &'a [Point] },
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    arguments.outputs.check()?;
    if let Some(trace) = &arguments.trace {
        let shown = show(trace, &format!("heaptoll ledger {}", shell_word(trace)), arguments);
        return shown.map_err(|failure| with_dashes(failure, trace));
    }
    let scratch = heaptoll_scratch::Scratch::make().map_err(|error| {
        Failure::Usage(format!("no temporary folder for the trace: {error}; name a file by -o"))
    })?;
    let first = arguments.output.clone().unwrap_or_else(|| scratch.path().join("trace"));
    let status = record(&recording(arguments, &first), &Places::find()?)?;
    if status == exit::INTERRUPTED {
        return Ok(status);
    }
    let trace = largest(&first);
    if trace != first {
        terminal::note(&format!(
            "of the sampled processes of this command, {} had the most resident memory in a snapshot: the ledger \
            is of it",
            shown(&trace)
        ));
    }
    let shown = show(&trace, &again(arguments), arguments)?;
    Ok(if status == 0 { shown } else { exit::TROUBLE })
}

/// Adds to a failure how a program is measured, where one was given in place of a trace.
fn with_dashes(failure: Failure, trace: &Path) -> Failure {
    let is_program =
        trace.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    match failure {
        Failure::Refused(_) if is_program => Failure::Usage(format!(
            "{failure}; to measure a program, put it after `--`: heaptoll ledger -- {}",
            shell_word(trace)
        )),
        other => other,
    }
}

/// What is recorded for the ledger, into this trace.
fn recording(arguments: &Arguments, trace: &Path) -> RecordingOptions {
    RecordingOptions {
        program: ProgramChoice {
            command: arguments.command.clone(),
            name: arguments.program.clone(),
            size: arguments.size.unwrap_or(SizeArg::Full),
            catalog: None,
        },
        manager: arguments.manager.clone(),
        output: Some(trace.into()),
        force: arguments.force,
        sites: false,
        latency: false,
        event_time: false,
        ledger: true,
        collect: arguments.collect,
        children: Children::Files,
        is_temporary: arguments.output.is_none(),
    }
}

/// The trace with the largest resident set among one and those of the processes that its process started.
fn largest(first: &Path) -> PathBuf {
    let peak = |path: &Path| -> Option<u64> {
        let ledger = heaptoll_trace::tables(path).ok()?.extra::<Ledger>(EXTRA)?.ok()?;
        ledger.peak().map(|peak| ledger.snapshots[peak].rss_bytes)
    };
    let mut best = (peak(first), first.to_owned());
    for path in heaptoll_record::others(first) {
        let rss = peak(&path);
        if rss > best.0 {
            best = (rss, path);
        }
    }
    best.1
}

/// A process image by its trace, for the user.
fn shown(trace: &Path) -> String {
    heaptoll_trace::tables(trace).map_or_else(|_| trace.display().to_string(), |tables| program(&tables))
}

fn shell_word(path: &Path) -> String {
    heaptoll_report::format::shell_command(&[path.display().to_string()])
}

/// The command that was given, without its output files.
fn again(arguments: &Arguments) -> String {
    let mut words: Vec<String> = vec!["heaptoll".into(), "ledger".into()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    option("-m", arguments.manager.clone());
    option("--program", arguments.program.clone());
    option("--size", arguments.size.and_then(|size| Some(size.to_possible_value()?.get_name().into())));
    if arguments.collect {
        words.push("--collect".into());
    }
    if !arguments.command.is_empty() {
        words.push("--".into());
        words.extend(arguments.command.iter().map(|shell_word| shell_word.to_string_lossy().into_owned()));
    }
    heaptoll_report::format::shell_command(&words)
}

/// Shows the ledger of a trace.
fn show(trace: &Path, command: &str, arguments: &Arguments) -> Result<u8, Failure> {
    let outputs = &arguments.outputs;
    let refused = |error: LedgerError| Failure::Refused(Box::new(error));
    let tables = heaptoll_trace::tables(trace).map_err(|error| refused(error.into()))?;
    let ledger = tables.extra::<Ledger>(EXTRA).transpose().map_err(|error| refused(error.into()))?;
    let (program, manager) = (program(&tables), manager(&tables));
    let was_requested = ledger.is_some();
    match ledger.filter(|ledger| !ledger.snapshots.is_empty()) {
        Some(mut ledger) => {
            if ledger.manager.is_empty() {
                ledger.manager.clone_from(&manager);
            }
            let mut document = document::document(&ledger, &program);
            let max_live_bytes =
                tables.ending.as_ref().map(|ending| ending.max_live_bytes).filter(|most| *most > 0);
            if let Some(first) = document.sections.first_mut() {
                first.text.extend(document::most_live(&ledger, max_live_bytes));
            }
            finish(&mut document, &tables, command);
            let figures = Figures::Pages {
                program: &program,
                manager: &ledger.manager,
                collector: ledger.collector,
                collected: ledger.collected,
                peak: ledger.peak(),
                most_live: ledger.fullest(),
                max_live_bytes,
                snapshots: &ledger.snapshots,
            };
            outputs.deliver(&document, "heaptoll-ledger/1", &figures)
        }
        None => {
            let memory = arguments.memory.each(heaptoll_ledger::EACH_OBJECT);
            let (points, damage) = heaptoll_ledger::coarse(trace, memory).map_err(|error| {
                let no_sample = was_requested && matches!(error, LedgerError::NotRecorded);
                refused(if no_sample { LedgerError::NoSnapshot } else { error })
            })?;
            let mut document = coarse::document(&points, &manager, &program, was_requested);
            // Reading the events finds damage that the tables do not show.
            document.warnings.extend(damage.into_iter().filter(|text| !tables.warnings.contains(text)));
            finish(&mut document, &tables, command);
            let figures = Figures::Coarse { program: &program, manager: &manager, points: &points };
            outputs.deliver(&document, "heaptoll-ledger/1", &figures)
        }
    }
}

/// Adds what every document of a trace has: warnings, facts and the command.
fn finish(document: &mut Document, tables: &Tables, command: &str) {
    document.warnings.extend(tables.warnings.iter().cloned());
    document.warnings.extend(own_heap_of_trace(Path::new(&tables.header.exe)));
    if let Some(missed) = missed_peak(tables) {
        document.warnings.push(missed);
    }
    for gap in &tables.gaps {
        document.warnings.push(format!("The trace has a hole ({}): blocks may be missing.", gap.why));
    }
    if let Some(ending) = &tables.ending {
        document.facts.push(("ended".into(), ending.how.clone()));
        if let Some(peak) = ending.peak_rss_kib {
            document.facts.push(("peak resident set of the run".into(), format!("{peak} KiB")));
        }
    }
    document.facts.extend(tables.header.machine.iter().cloned());
    document.command = command.into();
}

/// A warning that the process was larger between the snapshots than in any of them, by more than a twentieth.
fn missed_peak(tables: &Tables) -> Option<String> {
    let ledger = tables.extra::<Ledger>(EXTRA)?.ok()?;
    let sampled_kib = ledger.snapshots.get(ledger.peak()?)?.rss_bytes / 1024;
    let seen = tables.samples.iter().max_by_key(|sample| sample.rss_kib)?;
    (seen.rss_kib > sampled_kib + sampled_kib / 20).then(|| {
        format!(
            "The peak was not sampled: {} KiB were resident after {:.3} s, and {sampled_kib} KiB in the largest of \
            {}. What follows is of these snapshots.",
            seen.rss_kib,
            seen.time_ns as f64 / 1e9,
            plural(ledger.snapshots.len(), "snapshot")
        )
    })
}

fn program(tables: &Tables) -> String {
    match tables.header.command.is_empty() {
        true => tables.header.exe.clone(),
        false => heaptoll_report::format::shell_command(&tables.header.command),
    }
}

fn manager(tables: &Tables) -> String {
    match tables.header.manager.as_str() {
        "" => "an unknown manager".into(),
        name => name.into(),
    }
}
