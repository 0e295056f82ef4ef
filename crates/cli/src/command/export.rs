//! `heaptoll trace export`: a trace as Parquet, and its call stacks in the formats of viewers of profiles.

use std::path::{Path, PathBuf};

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_report::format::plural;
use heaptoll_trace_reports::export::page;
use heaptoll_trace_reports::export::profile::{self, Choice, Count, Format, Instant, Window};
use heaptoll_trace_reports::export::{dataset, parquet};

use crate::duration::two_times;
use crate::entry::Command;
use crate::exit::TROUBLE;
use crate::memory::MemoryArguments;
use crate::messages::TerminalMessages;
use crate::one_of::{Word, one_of};
use crate::terminal;

/// What a trace is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Parquet,
    Html,
    Profile(Format),
}

const FORMATS: [Word<To>; 9] = [
    ("parquet", To::Parquet, "Every event as a row, and call stacks as a second file: DuckDB, pandas, Spark"),
    (
        "html",
        To::Html,
        "Call stacks: a page of heaptoll's own, with a flame graph; no other program is needed",
    ),
    ("pprof", To::Profile(Format::Pprof), "Call stacks: `go tool pprof`, Grafana Pyroscope, Parca"),
    ("firefox", To::Profile(Format::Firefox), "Call stacks and when objects lived: profiler.firefox.com"),
    (
        "folded",
        To::Profile(Format::Folded),
        "Call stacks, a line each: flamegraph.pl and all that reads its input",
    ),
    ("dhat", To::Profile(Format::Dhat), "Call stacks and lifetimes: Valgrind's dh_view.html"),
    ("callgrind", To::Profile(Format::Callgrind), "Functions and calls: KCachegrind, callgrind_annotate"),
    ("speedscope", To::Profile(Format::Speedscope), "Call stacks: speedscope.app"),
    (
        "perfetto",
        To::Profile(Format::Perfetto),
        "Live bytes, resident set and ledger over time, and call stacks: ui.perfetto.dev",
    ),
];

/// When live objects are counted.
const INSTANTS: [Word<Instant>; 2] = [
    ("end", Instant::End, "At the end: what was never freed"),
    ("peak", Instant::Peak, "When the program had most bytes alive"),
];

/// The figure, in formats that have one.
const COUNTS: [Word<Count>; 4] = [
    ("allocated-bytes", Count::AllocatedBytes, "Bytes allocated"),
    ("allocated-objects", Count::AllocatedObjects, "Objects allocated"),
    ("live-bytes", Count::LiveBytes, "Bytes alive at the time of --at"),
    ("live-objects", Count::LiveObjects, "Objects alive at the time of --at"),
];

/// Write a trace for other tools: events as Parquet, call stacks for profile viewers.
///
/// Without --to, Parquet: one row an event; docs/reference/trace-parquet.md explains the columns and shows queries.
/// Call stacks go to a second file (`x.sites.parquet` next to `x.parquet`).
///
/// With another --to, it writes the call stacks of a trace recorded with --sites: what each allocated, and how much
/// of it was alive. It also reads heap profiles of other tools (pprof, DHAT, text of jemalloc and gperftools).
/// docs/questions/export.md shows how each viewer opens its file.
///
/// Exit status: 0 all well; 1 the trace is damaged (its whole part is exported) or a file could not be written; 2 not
/// a trace, unreadable, without call stacks, or the file exists.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll trace export gawk.heaptoll\n  \
    heaptoll trace export gawk.heaptoll -o /tmp/gawk.parquet --force\n  \
    duckdb -c \"select kind, count(*), sum(size) from 'gawk.parquet' group by kind\"\n  \
    heaptoll trace export gawk.heaptoll --to pprof                   (then: go tool pprof -http : gawk.pb.gz)\n  \
    heaptoll trace export gawk.heaptoll --to folded --at peak -o - | flamegraph.pl > gawk.svg\n  \
    heaptoll trace export server.heaptoll --to dhat --between 10s,60s\n  \
    heaptoll trace export heap.pb.gz --to speedscope                 (a heap profile of Go or jemalloc)\n  \
    heaptoll trace export all.db --parquet-dir runs                  (an experiment as a data set)")]
pub struct Arguments {
    /// A trace of `heaptoll record` (`-` is standard input), or a heap profile of pprof, DHAT, jemalloc or
    /// gperftools; with --parquet-dir, an experiment
    trace: PathBuf,
    /// Write an experiment as a Parquet data set: a file per shard, in folders `experiment=.../class=.../node=...`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["to", "output", "force", "between", "at", "value"])]
    parquet_dir: Option<PathBuf>,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "parquet", value_parser = one_of(&FORMATS))]
    to: To,
    /// The file to write, `-` for standard output [default: made from the trace's name, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(short, long)]
    force: bool,
    /// Count only objects allocated between two times, such as 10s,60s; live ones are counted at the second time. An
    /// older object that grows counts with its growth
    #[arg(long, value_name = "FROM,TO", value_parser = window)]
    between: Option<Window>,
    /// When live objects are counted, in formats with one such figure [default: end]
    #[arg(long, value_name = "WHEN", value_parser = one_of(&INSTANTS))]
    at: Option<Instant>,
    /// The figure of a format that has one (folded), or the first one shown (speedscope) [default: allocated-bytes;
    /// live-bytes with --at]
    #[arg(long, value_name = "FIGURE", value_parser = one_of(&COUNTS))]
    value: Option<Count>,
    #[command(flatten)]
    memory: MemoryArguments,
}

/// Two times of a run.
fn window(text: &str) -> Result<Window, String> {
    two_times(text).map(|[from_ns, to_ns]| Window { from_ns, to_ns })
}

impl Arguments {
    /// An option that the format has no use for is refused: its user expects something else of the file.
    fn check(&self) -> Result<(), Failure> {
        let is = |formats: &[To]| formats.contains(&self.to);
        let is_profile = |formats: &[Format]| matches!(self.to, To::Profile(own) if formats.contains(&own));
        let needs_none = is(&[To::Parquet, To::Html]) || is_profile(&[Format::Firefox, Format::Dhat]);
        let refused = [
            ("--between", self.between.is_some() && is(&[To::Parquet]), "has all events"),
            ("--at", self.at.is_some() && needs_none, "has the peak and the end"),
            (
                "--value",
                self.value.is_some() && !is_profile(&[Format::Folded, Format::Speedscope]),
                "has all figures, and its viewer chooses",
            ),
        ];
        let name = FORMATS.iter().find(|(_, to, _)| *to == self.to).map_or("", |(name, ..)| name);
        match refused.into_iter().find(|(_, is_refused, _)| *is_refused) {
            Some((option, _, why)) => {
                Err(Failure::Usage(format!("{option} does not go with --to {name}, which {why}")))
            }
            None => Ok(()),
        }
    }

    fn choice(&self) -> Choice {
        let usual = if self.at.is_some() { Count::LiveBytes } else { Count::AllocatedBytes };
        Choice { instant: self.at.unwrap_or(Instant::End), count: self.value.unwrap_or(usual) }
    }
}

impl Command for Arguments {
    const NAME: &'static str = "trace export";
    const FORMER: Option<&'static str> = Some("export");
    const FIRST: &'static [&'static str] = &["to", "between", "at"];

    fn run(arguments: &Self) -> Result<u8, Failure> {
        if let Some(folder) = &arguments.parquet_dir {
            return write_dataset(&arguments.trace, folder);
        }
        arguments.check()?;
        let (trace, output) = (arguments.trace.clone(), arguments.output.clone());
        let (force, memory_limit_bytes) = (arguments.force, arguments.memory.limit_bytes());
        let messages = TerminalMessages::default();
        let window = arguments.between.unwrap_or_default();
        let choice = arguments.choice();
        let format = match arguments.to {
            To::Profile(format) => format,
            // A page shows what a profile of any format has.
            To::Parquet | To::Html => Format::Folded,
        };
        let request =
            profile::ProfileRequest { trace, output, force, memory_limit_bytes, format, window, choice };
        let is_whole = match arguments.to {
            To::Parquet => parquet::run(&request, &messages)?,
            To::Html => page::run(&request, &messages)?,
            _ => profile::run(&request, &messages)?,
        };
        Ok(if is_whole { 0 } else { TROUBLE })
    }
}

/// Adds an experiment to a data set.
fn write_dataset(experiment: &Path, folder: &Path) -> Result<u8, Failure> {
    let written = dataset::write(experiment, folder)?;
    let (rows, files) = (plural(written.rows, "row"), plural(written.files, "file"));
    terminal::note(&format!("wrote {rows} to {files} below {}", folder.display()));
    Ok(0)
}
