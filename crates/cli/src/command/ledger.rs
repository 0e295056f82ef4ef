//! `heaptoll ledger`: where the memory of a program is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use heaptoll_catalog::Size;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::places::Places;
use heaptoll_report::format::shell_command;
use heaptoll_runs::record::{self, ProgramChoice, RecordingOptions};
use heaptoll_runs::standard_input::StandardInput;
use heaptoll_trace_reports::ledger::{self, LedgerRequest, LivePeak, ReplayRequest};
use heaptoll_trace_reports::replay::Touch;

use crate::documents::DocumentOutputs;
use crate::duration::positive_seconds;
use crate::entry::{Command, writes};
use crate::memory::MemoryArguments;
use crate::one_of::one_of;
use crate::outputs::own_arguments;
use crate::recording::{EndArguments, record, scratch_for_trace};
use crate::replays::TOUCHES;
use crate::session::Session;
use crate::workload_args::SIZES;
use crate::{exit, terminal, trace_hints};

/// Where a program's memory is: rows that add up to its resident set.
///
/// The rows are live bytes, fragmentation, caches, metadata, unreclaimed objects and memory outside the heap. Each is
/// split into resident and only mapped bytes, at the peak, in other snapshots and over time. docs/questions/ledger.md
/// explains how each is known.
///
/// A command runs as under `heaptoll record`: standard output is the command's, and the tables go to standard error.
/// The process with the largest resident set is shown. If a TRACE is one of several, a note names the longest.
///
/// With -m, a trace is also replayed under other managers: how much memory would each need, and which call site would
/// pin it?
///
/// Exit status: 0 all well; 1 the program failed, the trace is incomplete, a replay failed, or an output file could
/// not be written; 2 bad request, or nothing to show; 130 stopped before the program ended.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll ledger -m tithe --html perl.html -- perl script.pl\n  \
    heaptoll ledger --program gawk --size demo\n  \
    heaptoll record --ledger --sites -o perl.heaptoll -- perl script.pl && heaptoll ledger perl.heaptoll\n  \
    heaptoll ledger perl.heaptoll -m jemalloc -m mimalloc3   (what would these hold of the same program?)")]
pub struct Arguments {
    /// A trace that was recorded with --ledger
    #[arg(value_name = "TRACE", required_unless_present_any = ["command", "program"], conflicts_with = "after_s")]
    trace: Option<PathBuf>,
    /// The manager to run over, by name (`heaptoll managers`) or path; layers go in front (`sweep/mimalloc`), options
    /// after (`tithe,heap=32M`) [default: the program's own]. With a TRACE: also replay it under this manager, group
    /// or stack; may be given several times
    #[arg(short, long, value_name = "MANAGER")]
    manager: Vec<String>,
    /// What a replay does with blocks: `write` writes each in full when it is allocated
    #[arg(long, value_name = "HOW", default_value = "write", requires_all = ["trace", "manager"],
        value_parser = one_of(&TOUCHES))]
    touch: Touch,
    /// Seconds after which a run is ended and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true, value_parser = positive_seconds, requires_all = ["trace", "manager"])]
    timeout: f64,
    /// Keep the trace; traces of other processes go to FILE.children [default: a temporary file]
    #[arg(short, long, value_name = "FILE", conflicts_with = "trace")]
    output: Option<PathBuf>,
    /// Overwrite the trace when it exists
    #[arg(short, long, requires = "output")]
    force: bool,
    /// Under a collector: force a collection at every snapshot, to show what it reclaims; this changes the run
    #[arg(long, conflicts_with = "trace")]
    collect: bool,
    /// Run the program twice; the second run stops for a snapshot at the peak of the first, whose output is dropped. The
    /// program must do the same work each time; the report says if it did not
    #[arg(long, conflicts_with_all = ["trace", "after_s"])]
    exact: bool,
    #[command(flatten)]
    end: EndArguments,
    /// Do not record call sites: faster, but without the sites that pin pages
    #[arg(long, conflicts_with = "trace")]
    no_sites: bool,
    /// A program of the catalog (`heaptoll programs`), or the file of an entry (`./server.toml`)
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["command", "trace"])]
    program: Option<String>,
    /// Input size of the catalog program [default: full]
    #[arg(long, value_name = "SIZE", requires = "program", value_parser = one_of(&SIZES))]
    size: Option<Size>,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "trace")]
    command: Vec<OsString>,
}

impl Command for Arguments {
    const NAME: &'static str = "ledger";
    const FIRST: &'static [&'static str] = &["exact"];
    writes!(of: ledger::LedgerFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        if let Some(trace) = &arguments.trace {
            trace_hints::longest_trace(Self::NAME, trace);
            let shown = match arguments.manager.is_empty() {
                true => show(trace, &ledger::command(trace), None, arguments),
                false => compare(trace, arguments),
            };
            return shown.map_err(|failure| trace_hints::with_dashes(failure, "ledger", trace));
        }
        if arguments.manager.len() > 1 {
            return Err(Failure::Usage(
                "a program runs over one manager: record it with `heaptoll record --ledger --sites`, then compare with \
                 `heaptoll ledger TRACE -m ONE -m ANOTHER`"
                    .into(),
            ));
        }
        let scratch = scratch_for_trace()?;
        let first = arguments.output.clone().unwrap_or_else(|| scratch.path().join("trace"));
        let session = arguments.exact.then(Session::begin).transpose()?;
        // Both runs read it from its beginning.
        let stdin = match &session {
            Some(session) if arguments.program.is_none() => {
                Some(StandardInput::Own.path(&session.context())?.unwrap_or_else(|| "/dev/null".into()))
            }
            _ => None,
        };
        let places = Places::find()?;
        let mut request = recording(arguments, &first, stdin.as_deref());
        let mut first_run = None;
        if arguments.exact {
            let earlier = scratch.path().join("first-run");
            let earlier_request =
                record::Request { is_temporary: true, ..recording(arguments, &earlier, stdin.as_deref()) };
            let nowhere = Some(Path::new("/dev/null"));
            if record(&earlier_request, nowhere, &places, &arguments.end)? == exit::INTERRUPTED {
                show(&ledger::largest(&earlier).0, &again(arguments), None, arguments)?;
                return Ok(exit::INTERRUPTED);
            }
            first_run = ledger::live_peak(&ledger::largest(&earlier).0);
            request.options.stop =
                first_run.map(|peak| record::StopPoint { image: peak.image, events: peak.events });
        }
        let elsewhere = terminal::is_output_reserved().then_some(Path::new("/dev/stderr"));
        let status = record(&request, elsewhere, &places, &arguments.end)?;
        let (trace, images) = ledger::largest(&first);
        if images > 1 {
            let others = arguments.output.as_ref().map_or("`-o FILE` keeps", |_| "the files above are");
            terminal::note(&format!(
                "of this command's {images} process images, {} had the most resident memory: the ledger shows it; {others} \
                 the traces of all",
                ledger::process(&trace)
            ));
        }
        let shown = show(&trace, &again(arguments), first_run, arguments)?;
        Ok(match status {
            0 => shown,
            exit::INTERRUPTED => exit::INTERRUPTED,
            _ => exit::TROUBLE,
        })
    }
}

/// What is recorded for the ledger, into this trace.
fn recording(arguments: &Arguments, trace: &Path, stdin: Option<&Path>) -> record::Request {
    record::Request {
        program: ProgramChoice {
            command: arguments.command.clone(),
            name: arguments.program.clone(),
            size: arguments.size.unwrap_or(Size::Full),
            catalog: None,
            stdin: stdin.map(Path::to_owned),
        },
        manager: arguments.manager.first().cloned(),
        output: Some(trace.into()),
        force: arguments.force,
        options: RecordingOptions {
            ledger: true,
            sites: !arguments.no_sites,
            collect: arguments.collect,
            ..RecordingOptions::default()
        },
        is_temporary: arguments.output.is_none(),
    }
}

/// The command that was given, without its output files.
fn again(arguments: &Arguments) -> String {
    let mut words: Vec<String> = vec!["heaptoll".into(), "ledger".into()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    option("-m", arguments.manager.first().cloned());
    option("--program", arguments.program.clone());
    option("--size", arguments.size.map(|size| size.name().into()));
    let switches =
        [(arguments.collect, "--collect"), (arguments.exact, "--exact"), (arguments.no_sites, "--no-sites")];
    words.extend(switches.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| (*name).to_owned()));
    if !arguments.command.is_empty() {
        words.push("--".into());
        words.extend(arguments.command.iter().map(|word| word.to_string_lossy().into_owned()));
    }
    shell_command(&words)
}

/// Shows the ledger of a trace, and what other managers make of it.
fn compare(trace: &Path, arguments: &Arguments) -> Result<u8, Failure> {
    let session = Session::begin()?;
    let memory_limit_bytes = arguments.memory.limit_bytes();
    let mut found = ledger::measure(trace, LedgerRequest { memory_limit_bytes, first_run: None })?;
    let request = ReplayRequest {
        manager: arguments.manager.clone(),
        touch: arguments.touch,
        timeout: Duration::from_secs_f64(arguments.timeout),
        memory_limit_bytes,
    };
    found.replay(trace, &request, &session.context())?;
    let document = found.document(&shell_command(&own_arguments()));
    let code = arguments.outputs.deliver(&document, &found.figures)?;
    Ok(exit::of_trace(code, found.is_whole() && !found.has_failed_replay()))
}

/// Shows the ledger of a trace.
fn show(
    trace: &Path,
    command: &str,
    first_run: Option<LivePeak>,
    arguments: &Arguments,
) -> Result<u8, Failure> {
    let request = LedgerRequest { memory_limit_bytes: arguments.memory.limit_bytes(), first_run };
    let found = ledger::measure(trace, request)?;
    let document = found.document(command);
    let code = match &arguments.trace {
        Some(_) => arguments.outputs.deliver(&document, &found.figures)?,
        None => arguments.outputs.deliver_to_errors(&document, &found.figures),
    };
    Ok(exit::of_trace(code, found.is_whole()))
}
