//! `heaptoll record`: every allocation of a program into a trace, while it runs as it always does.

mod attach;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};
use heaptoll_catalog::Size;
use heaptoll_experiment::experiment::Protocol;
use heaptoll_experiment::places::Places;

use crate::bytes::bytes;
use crate::documents::DocumentOutputs;
use crate::duration::positive_seconds;
use crate::entry::{Command, writes};
use crate::one_of::{Word, one_of};
use crate::outputs::{Pages, own_arguments};
use crate::recording::EndArguments;
use crate::session::Session;
use crate::workload_args::SIZES;
use crate::written_files::TextFile;
use crate::{exit, recording, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_runs::graph;
use heaptoll_runs::preparation::baseline::DEFAULT;
use heaptoll_runs::record::{Children, ProgramChoice, RecordingOptions, Request};
use heaptoll_runs::sampled;
use heaptoll_runs::standard_input::StandardInput;
use heaptoll_runs::traced::{self, LIMIT_S};
use heaptoll_runs::workload::Workload;

/// If it contains a number, random numbers are equal in each run.
const SEED: &str = "HEAPTOLL_SAMPLE_SEED";

/// When events get a time: whether each has one.
const TIMES: [Word<bool>; 2] =
    [("batch", false, "About every millisecond"), ("event", true, "Each event: slower, and a larger trace")];

/// Processes that the program starts.
const CHILDREN: [Word<Children>; 2] = [
    (
        "files",
        Children::Files,
        "Each process gets its own trace: FILE.children/PID.heaptoll, and PID.2.heaptoll after an exec",
    ),
    ("ignore", Children::Ignore, "Only the first process is recorded, until an exec"),
];

/// Record every allocation of a program into a trace for other commands.
///
/// The program runs as it would without heaptoll, with its own input and output. heaptoll writes to standard error
/// only and returns the program's exit status (128 and the signal, if one killed it). A crash loses nothing. If
/// heaptoll is killed, the program goes on and the trace ends there.
///
/// The first Ctrl-C goes to the program; a second one stops the recording only. --for does both: it sends Ctrl-C's
/// signal after its time, and stops 10 s later.
///
/// With --graph the program runs twice or more, each time with all of standard input and without showing its output.
/// The first run proves the manager natively; the second runs under the tracer. Its effects on files and other
/// processes happen each time. Ctrl-C ends the current run; after the first run the second follows, and its trace
/// covers the time until its end.
///
/// With --sample the program is sampled instead, at almost no cost, for use in production. It writes a heap profile
/// in pprof's format, and shows call sites with confidence intervals on standard error (docs/questions/sampling.md).
///
/// The rings take memory in $XDG_RUNTIME_DIR, /dev/shm, $TMPDIR or /tmp: 64 KiB per thread, more for threads that
/// allocate much. Together they take at most 256 MiB, half of the free space there, and a quarter of the available
/// memory. So 1,000 threads take 63 to 183 MiB. A thread without memory for its ring shares one or goes on
/// unrecorded; the trace and the exit status show this.
///
/// Exit status: the program's, or 0 if --for ended it; 1 if that is 0 and the trace is incomplete, or a started
/// program could not be recorded; 2 bad request; 130 the recording was stopped before the program ended.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  heaptoll record -- gawk -f report.awk data.txt        (writes gawk.heaptoll)\n  \
    heaptoll record -o build.heaptoll --sites -- make -j4  (and where each call comes from)\n  \
    heaptoll record -m mimalloc3 --program cfrac --size demo\n  \
    heaptoll record --graph --program lua --size quick      (writes lua.graph: which objects point to which)\n  \
    heaptoll record --sample 512K -- ./server               (writes server.pb.gz: a heap profile)\n  \
    heaptoll record --for 30s --sites --ledger -- ./server  (then `leaks server.heaptoll`, `ledger server.heaptoll`)\n  \
    heaptoll trace stat gawk.heaptoll                            (what was recorded)"
)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// The trace [default: PROGRAM.heaptoll in the current folder, PROGRAM.graph with --graph, PROGRAM.pb.gz with --sample]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the trace when it exists
    #[arg(short, long)]
    force: bool,
    /// Record the call stack of each call
    #[arg(long)]
    sites: bool,
    /// The manager to run over, by name (`heaptoll managers`) or path; layers go in front
    /// (`quarantine=2M/mimalloc`), options after (`tithe,heap=32M`) [default: the program's own]
    #[arg(short, long, value_name = "MANAGER")]
    manager: Option<String>,
    /// Record how long each call takes
    #[arg(long)]
    latency: bool,
    /// When events get a time
    #[arg(long, action = ArgAction::Set, value_parser = one_of(&TIMES), default_value = "batch", value_name = "WHEN")]
    time: bool,
    /// Take snapshots of the memory for `heaptoll ledger FILE`: 40 to 80 in a long run, fewer in a short one; each
    /// stops the program
    #[arg(long)]
    ledger: bool,
    /// Force a collection at each snapshot, to show what it reclaims; this changes the run
    #[arg(long, requires = "ledger")]
    collect: bool,
    /// How to treat processes that the program starts
    #[arg(long, default_value = "files", value_name = "HOW", value_parser = one_of(&CHILDREN))]
    children: Children,
    #[command(flatten)]
    end: EndArguments,
    /// Record pointers between objects, roots, and each object's last touch, under the tracer; some tens of times
    /// slower, without the program's output (docs/lab/graph.md)
    #[arg(long, conflicts_with_all = ["latency", "time", "ledger", "children", "brief", "after_s"])]
    graph: bool,
    /// With --graph, also record every load and store, and the requests that the program marks
    /// (docs/questions/events.md)
    #[arg(long, requires = "graph")]
    references: bool,
    /// With --graph, bytes allocated from one root point to the next [default: some hundred points in the run]
    #[arg(long, value_name = "SIZE", requires = "graph", value_parser = root_distance)]
    roots_every: Option<u32>,
    /// With --graph, seconds after which the program is ended; the recording until then is kept
    #[arg(long, value_name = "T", requires = "graph", default_value_t = LIMIT_S, allow_negative_numbers = true,
        value_parser = positive_seconds)]
    timeout: f64,
    /// With --graph, the exit status of a good run
    #[arg(long, value_name = "STATUS", requires = "graph", default_value_t = 0,
        value_parser = clap::value_parser!(i32).range(0..=255))]
    expect_status: i32,
    /// With --graph, a file that names further allocators inside programs, to be followed too
    /// (docs/questions/own-allocators.md)
    #[arg(long, value_name = "FILE", requires = "graph")]
    allocator_symbols: Option<PathBuf>,
    /// Sample instead of recording: one byte in SIZE is a sample point; 512K suits production, 1 samples every
    /// allocation
    #[arg(long, value_name = "SIZE", value_parser = sample_distance,
        conflicts_with_all = ["sites", "latency", "time", "ledger", "graph", "brief"])]
    sample: Option<u64>,
    /// With --sample, sample nothing until `heaptoll record attach SOCKET start`
    #[arg(long, requires_all = ["sample", "socket"])]
    dormant: bool,
    /// With --sample, a socket: while the program runs, `heaptoll record attach` wakes the sampler and fetches profiles
    #[arg(long, value_name = "PATH", requires = "sample")]
    socket: Option<PathBuf>,
    /// With --sample, write the figures as JSON
    #[arg(long, value_name = "FILE", requires = "sample")]
    json: Option<TextFile>,
    /// With --sample, write a self-contained HTML page with a flame graph
    #[arg(long, value_name = "FILE", requires = "sample")]
    html: Option<TextFile>,
    /// With --sample, frames of the program's own code that a call site is shown by
    #[arg(long, value_name = "N", requires = "sample", default_value_t = heaptoll_callsites::FRAMES as u8,
        value_parser = clap::value_parser!(u8).range(1..))]
    frames: u8,
    /// A program of the catalog (`heaptoll programs`), or the file of an entry (`./server.toml`)
    #[arg(short, long, value_name = "NAME", conflicts_with = "command")]
    program: Option<String>,
    /// Input size of the catalog program
    #[arg(long, default_value = "full", value_name = "SIZE", requires = "program", value_parser = one_of(&SIZES))]
    size: Size,
    /// A folder with your own catalog entries (docs/reference/program-format.md)
    #[arg(long, value_name = "DIR", requires = "program")]
    catalog: Option<PathBuf>,
    /// Report only problems at the end, for a temporary trace
    #[arg(long, hide = true)]
    brief: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Other actions.
#[derive(Debug, Subcommand)]
enum Action {
    Attach(attach::Arguments),
}

impl Command for Arguments {
    const NAME: &'static str = "record";
    const FIRST: &'static [&'static str] = &["sites", "ledger", "graph", "sample"];
    writes!(of: sampled::Figures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        if let Some(Action::Attach(arguments)) = &arguments.action {
            return attach::run(arguments);
        }
        if arguments.graph {
            return record_graph(arguments);
        }
        if let Some(mean_bytes) = arguments.sample {
            return record_samples(arguments, mean_bytes);
        }
        let places = Places::find()?;
        let request = Request {
            program: program(arguments),
            manager: arguments.manager.clone(),
            output: arguments.output.clone(),
            force: arguments.force,
            options: RecordingOptions {
                sites: arguments.sites,
                latency: arguments.latency,
                event_time: arguments.time,
                ledger: arguments.ledger,
                collect: arguments.collect,
                children: arguments.children,
                stop: None,
            },
            is_temporary: arguments.brief,
        };
        recording::record(&request, None, &places, &arguments.end)
    }
}

fn program(arguments: &Arguments) -> ProgramChoice {
    ProgramChoice {
        command: arguments.command.clone(),
        name: arguments.program.clone(),
        size: arguments.size,
        catalog: arguments.catalog.clone(),
        stdin: None,
    }
}

/// Under the sampling layer instead of the recording layer.
fn record_samples(arguments: &Arguments, mean_bytes: u64) -> Result<u8, Failure> {
    let places = Places::find()?;
    let pages = Pages { html: arguments.html.clone(), ..Pages::default() };
    let outputs = DocumentOutputs { pages, json: arguments.json.clone() };
    let request = sampled::Request {
        program: program(arguments),
        manager: arguments.manager.clone(),
        output: arguments.output.clone(),
        force: arguments.force,
        mean_bytes,
        seed: seed()?,
        dormant: arguments.dormant,
        socket: arguments.socket.clone(),
        children: arguments.children,
        frames: arguments.frames.into(),
        style: terminal::style(),
    };
    let (outcome, mut code) = recording::sample(&request, &places, &arguments.end)?;
    if let Some((figures, document)) = &outcome.shown {
        code = code.max(outputs.deliver_to_errors(document, figures));
    }
    Ok(code)
}

/// The seed of a run that is to repeat itself, for tests.
fn seed() -> Result<Option<u64>, Failure> {
    let Some(text) = std::env::var_os(SEED) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Failure::Usage(format!("{SEED} must be a whole number")))
}

/// Bytes between sample points.
fn sample_distance(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    (1..=sampled::MOST_MEAN)
        .contains(&bytes)
        .then_some(bytes)
        .ok_or_else(|| "a distance between sample points is between 1 byte and 1024 GiB".to_owned())
}

/// Under the tracer instead of the recording layer.
fn record_graph(arguments: &Arguments) -> Result<u8, Failure> {
    let session = Session::begin()?;
    let name = arguments.program.clone().or_else(|| {
        let path = PathBuf::from(arguments.command.first()?);
        Some(path.file_name()?.to_string_lossy().into_owned())
    });
    let output = arguments.output.clone();
    let manager = arguments.manager.clone();
    let request = graph::Request {
        traced: traced::Request {
            workload: Workload {
                program: arguments.program.iter().cloned().collect(),
                size: arguments.size,
                catalog: arguments.catalog.clone(),
                stdin: StandardInput::file_or_own(None),
                ..Workload::of_command(&arguments.command)
            },
            baseline: manager.clone().unwrap_or_else(|| DEFAULT.into()),
            manager: manager.into_iter().collect(),
            protocol: Protocol {
                timeout_s: arguments.timeout,
                expect_status: arguments.expect_status,
                repeat_command: own_arguments(),
                ..Protocol::default()
            },
            pin: true,
            is_stored: false,
            db: None,
            allocator_symbols: arguments.allocator_symbols.clone(),
        },
        output: output.unwrap_or_else(|| PathBuf::from(format!("{}.graph", name.unwrap_or_default()))),
        force: arguments.force,
        sites: arguments.sites,
        references: arguments.references,
        roots_every_bytes: arguments.roots_every,
        is_temporary: false,
    };
    let outcome = graph::record(&request, &session.context())?;
    Ok(match outcome.status {
        None if outcome.interrupted => exit::INTERRUPTED,
        None => exit::TROUBLE,
        Some(0) if !outcome.is_whole => exit::TROUBLE,
        Some(status) => status,
    })
}

/// Bytes between root points.
fn root_distance(text: &str) -> Result<u32, String> {
    let bytes = bytes(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=i32::MAX as u32).contains(bytes))
        .ok_or_else(|| "a distance between root points is between 1 byte and 2 GiB".to_owned())
}
