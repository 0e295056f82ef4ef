//! `heaptoll leaks`: what a program never frees, and what of it is a leak.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_catalog::Size;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::experiment::Protocol;
use heaptoll_report::format::{and_list, shell_command};
use heaptoll_runs::graph;
use heaptoll_runs::preparation::baseline::DEFAULT;
use heaptoll_runs::siblings;
use heaptoll_runs::standard_input::StandardInput;
use heaptoll_runs::traced::{self, LIMIT_S};
use heaptoll_runs::workload::Workload;
use heaptoll_trace_reports::leaks::{self, Fault, Figures, LeaksRequest, Suppressions, Verdict, images};

use crate::documents::DocumentOutputs;
use crate::duration::positive_seconds;
use crate::entry::{Command, writes};
use crate::frames::FramesArguments;
use crate::memory::MemoryArguments;
use crate::one_of::{Word, one_of};
use crate::outputs::own_arguments;
use crate::recording::scratch_for_trace;
use crate::session::Session;
use crate::workload_args::SIZES;
use crate::{exit, terminal, trace_hints};

/// The kind of leak that makes the command fail.
const FAULTS: [Word<Fault>; 4] = [
    ("definite", Fault::Definite, "Objects that no pointer leads to"),
    ("possible", Fault::Possible, "Objects that only interior pointers lead to"),
    (
        "growing",
        Fault::Growing,
        "Call sites whose live bytes rise over the whole run, or all live bytes together",
    ),
    ("never-freed", Fault::NeverFreed, "Anything that is not freed at the end"),
];

/// What leaks: lost objects, reachable ones that are no longer touched, and growth.
///
/// A command runs under the tracer, some tens of times slower, with its own manager. The tracer knows which objects
/// are reachable at the end, and when each was last touched. Lost objects have the kinds of Valgrind's memcheck
/// (definitely, indirectly, possibly), by call site. A trace of `heaptoll record --graph --sites` shows the same. A
/// trace of `heaptoll record --sites` costs little and shows what was never freed and what grows.
///
/// Exit status: 0 all well; 1 a leak that --fail-on names, the program failed, the trace is damaged (without
/// --fail-on), or an output file could not be written; 2 bad request, or this kind of trace does not show what
/// --fail-on names; 3 --fail-on is undecided: the run is too short, the trace has no objects, or its whole part has no
/// such leak; 130 interrupted. Ctrl-C goes to the program, and the answer covers the run until then; a second Ctrl-C
/// kills the program. During the first run, without the tracer, Ctrl-C ends that run only.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll leaks -- ./requests 200\n  \
    heaptoll leaks --fail-on definite --suppress known.txt --markdown - -- ./tests\n  \
    heaptoll record --sites -o server.heaptoll -- ./server && heaptoll leaks server.heaptoll")]
pub struct Arguments {
    /// A trace, with or without pointers; `-` is standard input (without pointers)
    #[arg(value_name = "TRACE", required_unless_present_any = ["command", "program"])]
    trace: Option<PathBuf>,
    /// Exit with status 1 on such a leak; may be given several times
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = one_of(&FAULTS))]
    fail_on: Vec<Fault>,
    /// A file of known leaks: lines `function PATTERN` or `object PATTERN`, `*` for any text. Call stacks with such a
    /// frame are left out and summed up; may be given several times
    #[arg(long, value_name = "FILE")]
    suppress: Vec<PathBuf>,
    /// The manager to run over, by name (`heaptoll managers`) or path; layers go in front
    /// (`quarantine=2M/mimalloc`), options after (`tithe,heap=32M`) [default: the program's own]
    #[arg(short, long, value_name = "MANAGER", conflicts_with = "trace")]
    manager: Option<String>,
    /// Keep the trace; traces of other processes go to FILE.children [default: a temporary file]
    #[arg(short, long, value_name = "FILE", conflicts_with = "trace")]
    output: Option<PathBuf>,
    /// Overwrite the trace when it exists
    #[arg(short, long, requires = "output")]
    force: bool,
    /// Seconds after which a run is ended and marked
    #[arg(long, value_name = "T", default_value_t = LIMIT_S, conflicts_with = "trace", allow_negative_numbers = true,
        value_parser = positive_seconds)]
    timeout: f64,
    /// The process to show, by number or program name; --fail-on then covers only these [default: the one that lost
    /// most; for a trace, its own]
    #[arg(long, value_name = "PROCESS")]
    process: Option<String>,
    /// A program of the catalog (`heaptoll programs`), or the file of an entry (`./server.toml`)
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["command", "trace"])]
    program: Option<String>,
    /// Input size of the catalog program [default: quick]
    #[arg(long, value_name = "SIZE", requires = "program", value_parser = one_of(&SIZES))]
    size: Option<Size>,
    #[command(flatten)]
    frames: FramesArguments,
    #[command(flatten)]
    memory: MemoryArguments,
    #[command(flatten)]
    outputs: DocumentOutputs,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "trace")]
    command: Vec<OsString>,
}

impl Command for Arguments {
    const NAME: &'static str = "leaks";
    const FIRST: &'static [&'static str] = &["fail_on", "suppress"];
    writes!(of: Figures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let suppressions =
            Suppressions::read(&arguments.suppress).map_err(|error| Failure::Refused(Box::new(error)))?;
        let request = LeaksRequest {
            frames: arguments.frames.shown(),
            memory_limit_bytes: arguments.memory.limit_bytes(),
            suppressions,
        };
        match &arguments.trace {
            Some(trace) => of_trace(trace, arguments, &request),
            None => of_command(arguments, &request),
        }
    }
}

/// A process image's trace, and what is in it.
type Image = (PathBuf, Figures);

fn of_trace(trace: &Path, arguments: &Arguments, request: &LeaksRequest) -> Result<u8, Failure> {
    let traces = match arguments.process {
        Some(_) => siblings::all(trace),
        None => {
            trace_hints::longest_trace("leaks", trace);
            vec![trace.to_owned()]
        }
    };
    let all =
        measured(traces, request).map_err(|failure| trace_hints::with_dashes(failure, "leaks", trace))?;
    let mut words: Vec<String> = vec!["heaptoll".into(), "leaks".into()];
    words.extend(arguments.process.iter().flat_map(|process| ["--process".to_owned(), process.clone()]));
    words.push(trace.display().to_string());
    let answer = show(&all, &shell_command(&words), arguments)?;
    if arguments.fail_on.is_empty() {
        return Ok(exit::of_trace(answer.shown, answer.is_whole));
    }
    // Of a damaged trace the status is that of what is whole, which is decided, or not.
    Ok(worst(&[answer.shown, answer.found]))
}

/// Records a run, and shows the process image that lost most.
fn of_command(arguments: &Arguments, request: &LeaksRequest) -> Result<u8, Failure> {
    let session = Session::begin()?;
    let scratch = scratch_for_trace()?;
    let first = arguments.output.clone().unwrap_or_else(|| scratch.path().join("run.graph"));
    terminal::note("the program runs under the tracer, some tens of times slower; its output is not shown");
    let outcome = graph::record(&recording(arguments, &first), &session.context())?;
    let all = measured(graph::traces(&first), request)?;
    let answer = show(&all, &again(arguments), arguments)?;
    if outcome.interrupted {
        return Ok(exit::INTERRUPTED);
    }
    let failed = if outcome.status == Some(0) && outcome.is_whole { 0 } else { exit::TROUBLE };
    Ok(worst(&[answer.shown, answer.found, failed]))
}

fn measured(traces: Vec<PathBuf>, request: &LeaksRequest) -> Result<Vec<Image>, Failure> {
    let measured = |trace: PathBuf| leaks::measure(&trace, request).map(|figures| (trace, figures));
    traces.into_iter().map(measured).collect()
}

/// The exit status of a command of several: what went wrong, or was found, before what is undecided.
fn worst(codes: &[u8]) -> u8 {
    [exit::TROUBLE, exit::UNDECIDED].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
}

fn recording(arguments: &Arguments, trace: &Path) -> graph::Request {
    let manager = arguments.manager.clone();
    graph::Request {
        traced: traced::Request {
            workload: Workload {
                program: arguments.program.iter().cloned().collect(),
                size: arguments.size.unwrap_or(Size::Quick),
                stdin: StandardInput::file_or_own(None),
                ..Workload::of_command(&arguments.command)
            },
            baseline: manager.clone().unwrap_or_else(|| DEFAULT.into()),
            manager: manager.into_iter().collect(),
            protocol: Protocol {
                timeout_s: arguments.timeout,
                repeat_command: own_arguments(),
                ..Protocol::default()
            },
            pin: true,
            is_stored: false,
            db: None,
            allocator_symbols: None,
        },
        output: trace.to_owned(),
        force: arguments.force,
        sites: true,
        references: false,
        roots_every_bytes: None,
        is_temporary: arguments.output.is_none(),
    }
}

/// The command that was given, without its output files.
fn again(arguments: &Arguments) -> String {
    let mut words: Vec<String> = vec!["heaptoll".into(), "leaks".into()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    option("-m", arguments.manager.clone());
    option("--process", arguments.process.clone());
    option("--program", arguments.program.clone());
    option("--size", arguments.size.map(|size| size.name().into()));
    for file in &arguments.suppress {
        option("--suppress", Some(file.display().to_string()));
    }
    if !arguments.command.is_empty() {
        words.push("--".into());
        words.extend(arguments.command.iter().map(|word| word.to_string_lossy().into_owned()));
    }
    shell_command(&words)
}

/// What was shown, and what --fail-on found.
struct Answer {
    shown: u8,
    found: u8,
    is_whole: bool,
}

/// Shows the image that lost most of those requested, and judges these.
fn show(all: &[Image], again: &str, arguments: &Arguments) -> Result<Answer, Failure> {
    let is_wanted = |(_, figures): &&Image| match &arguments.process {
        Some(process) => images::is_named(figures, process),
        None => true,
    };
    let wanted: Vec<&Image> = all.iter().filter(is_wanted).collect();
    // Of equal ones the first.
    let Some((trace, figures)) = wanted.iter().rev().max_by_key(|(_, figures)| images::weight(figures))
    else {
        let names: Vec<String> = all.iter().map(|(_, figures)| images::name(figures)).collect();
        return Err(Failure::Usage(format!(
            "no process is called {}; there are: {}",
            arguments.process.as_deref().unwrap_or_default(),
            names.join(", ")
        )));
    };
    if wanted.len() > 1 {
        terminal::note(&format!(
            "of {} processes, {} lost most: these are its leaks",
            wanted.len(),
            images::name(figures)
        ));
    }
    let each: Vec<&Figures> = all.iter().map(|(_, figures)| figures).collect();
    let document = leaks::document(figures, &each, trace, again);
    Ok(Answer {
        shown: arguments.outputs.deliver(&document, figures)?,
        found: judged(&wanted, arguments)?,
        is_whole: figures.subject.is_whole(),
    })
}

/// The exit status by what was to make the command fail.
fn judged(images: &[&Image], arguments: &Arguments) -> Result<u8, Failure> {
    let (mut found, mut undecided) = (Vec::new(), Vec::new());
    // Of a command the tracer proves that it allocates nothing; of a trace the recorder may have missed it.
    let is_empty = images.iter().all(|(_, figures)| figures.allocated.objects == 0);
    if is_empty && arguments.trace.is_some() && !arguments.fail_on.is_empty() {
        undecided.push("the trace has no objects; was the program recorded?".to_owned());
    }
    for (trace, figures) in images {
        for fault in &arguments.fail_on {
            match fault.judge(figures, trace)? {
                Verdict::Found if found.contains(fault) => {}
                Verdict::Found => found.push(*fault),
                Verdict::None => {}
                Verdict::Undecided(why) => undecided.push(why),
            }
        }
    }
    if !found.is_empty() {
        let name = |fault: &Fault| {
            FAULTS.iter().find(|(_, one, _)| one == fault).map(|(name, ..)| (*name).to_owned())
        };
        let names: Vec<String> = found.iter().filter_map(name).collect();
        terminal::error(&format!("status {} by --fail-on: {}", exit::TROUBLE, and_list(&names)));
        return Ok(exit::TROUBLE);
    }
    if undecided.is_empty() {
        return Ok(0);
    }
    undecided.iter().for_each(|why| terminal::error(&format!("not decided: {why}")));
    Ok(exit::UNDECIDED)
}
