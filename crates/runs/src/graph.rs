//! `heaptoll record --graph`: a program's run under the tracer, as traces with pointers.

use std::path::{Path, PathBuf};

use heaptoll_experiment::observation::Outcome as ProgramOutcome;
use heaptoll_graph_record::{Counts, Recorder};
use heaptoll_launcher::Ended;
use heaptoll_reftrace_host::{Image, ImageEnding, Options, TracedImage};
use heaptoll_report::format::{count, plural, printable, ratio, shell_path};
use heaptoll_trace::graph::Writer;
use heaptoll_trace::{Ending, GraphSettings, Header, Settings, TraceError, TraceFile};

use crate::record::NOTHING_TO_RECORD;
use crate::traced::{self, Cell, Run, plan, remarks_of};
use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;
use heaptoll_command::writable;

/// Frames recorded of a call site.
const FRAMES: u32 = 12;
/// What the names of traces of other images than the first end with.
const ENDING: &str = ".graph";
/// Distance of the first root points where none is set, bytes; the tracer's own.
const FIRST_DISTANCE: u64 = 1024;

/// What is recorded, and where to.
#[derive(Debug, Clone)]
pub struct Request {
    /// The program, its manager, limits.
    pub traced: traced::Request,
    /// The first image's trace.
    pub output: PathBuf,
    /// Whether traces that exist are overwritten.
    pub force: bool,
    /// Whether call stacks are recorded.
    pub sites: bool,
    /// Whether every load and store is recorded, and the requests that the program marks.
    pub references: bool,
    /// Bytes allocated between root points; where there are none, as many as make some hundred.
    pub roots_every_bytes: Option<u32>,
    /// Whether the traces are for one command only: what is in them is then not reported.
    pub is_temporary: bool,
}

/// What was recorded.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status of the program, 128 and the signal where one ended it; none where heaptoll did.
    pub status: Option<u8>,
    /// Whether Ctrl-C came before its end.
    pub interrupted: bool,
    /// Whether every trace is whole.
    pub is_whole: bool,
}

/// The trace of one image under way.
type Sink = Recorder<TraceFile>;

/// Runs the program and writes its traces: that of the first process image into `output`, the others into the folder
/// `output` with `.children` behind.
///
/// # Errors
/// See [`plan`]; several programs or managers; a trace cannot be made; the program was ended before it recorded anything.
pub fn record(request: &Request, context: &Context) -> Result<Outcome, Failure> {
    check_output(request)?;
    if request.traced.workload.is_empty() {
        return Err(Failure::Usage(NOTHING_TO_RECORD.into()));
    }
    let mut plan = plan(&request.traced, context)?;
    let cell = match &plan.cells[..] {
        [one] => one.clone(),
        all => {
            return Err(Failure::Usage(format!(
                "a trace with pointers covers one program under one manager, but {} were named",
                all.len()
            )));
        }
    };
    let options = Options {
        references: true,
        graph: true,
        roots_every_bytes: request.roots_every_bytes.unwrap_or(0),
        requests: request.references,
        sites: if request.sites { FRAMES } else { 0 },
        ..Options::default()
    };
    let mut files = Files { request, cell: &cell, begun: Vec::new(), failed: Vec::new() };
    let run = plan.run_one(&cell, &options, context, |image| files.begin(image))?;
    let Files { begun, mut failed, .. } = files;
    if failed.first().is_some_and(|(number, _)| *number == 0) {
        return Err(Failure::Refused(Box::new(failed.swap_remove(0).1)));
    }
    for (_, error) in &failed {
        context.messages.error(&format!("{error}; the events of that process are lost"));
    }
    let outcome = finish(request, &cell, run, begun, context)?;
    Ok(Outcome { is_whole: outcome.is_whole && failed.is_empty(), ..outcome })
}

fn check_output(request: &Request) -> Result<(), Failure> {
    if request.output == Path::new("-") {
        return Err(Failure::Usage("a trace with pointers goes into a file: name one with -o FILE".into()));
    }
    if !request.force && request.output.exists() {
        let name = request.output.display().to_string();
        return Err(Failure::Refused(Box::new(TraceError::Exists { name })));
    }
    let refuse = |why: String| Failure::Usage(format!("cannot write {}: {why}", request.output.display()));
    writable::regular(&request.output).map_err(refuse)?;
    writable::check(&request.output).map_err(refuse)
}

/// Makes the files of the traces.
struct Files<'a> {
    request: &'a Request,
    cell: &'a Cell,
    /// Of all images in their order, whether their file could be made or not.
    begun: Vec<PathBuf>,
    /// Files that could not be made: the number of the image and why.
    failed: Vec<(usize, TraceError)>,
}

impl Files<'_> {
    /// Begins an image's trace. None where its file cannot be made.
    fn begin(&mut self, image: &Image) -> Option<Sink> {
        let path = self.path(image);
        let made = self.make(&path, image);
        self.begun.push(path);
        made.map_err(|error| self.failed.push((self.begun.len() - 1, error))).ok()
    }

    fn path(&self, image: &Image) -> PathBuf {
        if self.begun.is_empty() {
            return self.request.output.clone();
        }
        let folder = others(&self.request.output);
        match image.number {
            0 => folder.join(format!("{}{ENDING}", image.pid)),
            number => folder.join(format!("{}.{}{ENDING}", image.pid, number + 1)),
        }
    }

    fn make(&self, path: &Path, image: &Image) -> Result<Sink, TraceError> {
        if let Some(folder) = path.parent().filter(|_| !self.begun.is_empty()) {
            std::fs::create_dir_all(folder).map_err(|source| TraceError::System {
                action: "make",
                name: folder.display().to_string(),
                source,
            })?;
        }
        let file = TraceFile::create(path, self.request.force)?;
        if self.begun.is_empty() && self.request.force {
            forget_others(path);
        }
        let begun = Writer::new(file, &self.header(image), &Settings::default());
        let writer = begun.inspect_err(|_| {
            // A file without a header is no trace, and would be read as one.
            let _ = std::fs::remove_file(path);
        })?;
        Ok(Recorder::new(writer, self.request.references))
    }

    fn header(&self, image: &Image) -> Header {
        let directory = std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default();
        Header {
            command: image.command.clone(),
            exe: image.command.first().cloned().unwrap_or_default(),
            directory,
            pid: image.pid,
            parent_pid: image.parent,
            started_unix_s: clock::now().as_secs(),
            manager: self.cell.stack.name.clone(),
            manager_version: self.cell.stack.version.clone(),
            recorder: env!("CARGO_PKG_VERSION").into(),
            sites: self.request.sites,
            machine: crate::record::machine(&self.request.traced.workload.command, &[]),
            graph: Some(GraphSettings {
                page_bytes: rustix::param::page_size() as u64,
                roots_every_bytes: self.request.roots_every_bytes.map_or(FIRST_DISTANCE, u64::from),
                references: self.request.references,
            }),
            ..Header::default()
        }
    }
}

/// The traces of a run whose first one is this, the others in order of their names.
pub fn traces(output: &Path) -> Vec<PathBuf> {
    let others = std::fs::read_dir(others(output)).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> =
        others.map(|entry| entry.path()).filter(|path| trace_source::is_graph(path)).collect();
    all.sort();
    all.insert(0, output.to_owned());
    all
}

/// The folder of the traces of other images than the first.
fn others(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".children");
    PathBuf::from(name)
}

/// Removes the other traces of a recording whose first one is overwritten.
fn forget_others(output: &Path) {
    let folder = others(output);
    for path in std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(ENDING));
        if name.is_some_and(|name| name.split('.').all(|part| part.parse::<u32>().is_ok())) {
            // One that stays is overwritten where its process number comes again.
            let _ = std::fs::remove_file(path);
        }
    }
    // Not where there is something else in it.
    let _ = std::fs::remove_dir(folder);
}

/// Completes the traces, and reports what is in them.
fn finish(
    request: &Request,
    cell: &Cell,
    run: Run<Option<Sink>>,
    begun: Vec<PathBuf>,
    context: &Context,
) -> Result<Outcome, Failure> {
    let Run { mut traced, row } = run;
    let mut is_whole = traced.is_whole();
    let interrupted = row.outcome == ProgramOutcome::Interrupted && traced.stopped.is_none();
    let remarks = remarks_of(cell, &traced, &row.outcome);
    if traced.images.is_empty() {
        return Err(match interrupted {
            true => Failure::Interrupted,
            false => Failure::NothingToCompare(format!("nothing was recorded: {}", remarks.join("; "))),
        });
    }
    let first = traced.images.first().map(|image| image.image.pid);
    let ended = traced.finished.ended;
    let mut all = Vec::new();
    for (image, path) in std::mem::take(&mut traced.images).into_iter().zip(begun) {
        let (ending, sink) = (ending(&image, first, ended), image.sink);
        let Some(recorder) = sink else { continue };
        let (counts, refused) = match recorder.finish(&ending) {
            Ok((_, counts, refused)) => (counts, refused),
            Err(error) if path == request.output => return Err(Failure::Trouble(Box::new(error))),
            Err(error) => {
                is_whole = false;
                context.messages.error(&not_whole(&path, &error.to_string(), 0));
                continue;
            }
        };
        if let Some(why) = refused {
            is_whole = false;
            context.messages.error(&not_whole(&path, &why, counts.lost));
        }
        all.push((path, counts));
    }
    if !request.is_temporary {
        report(request, &all, context);
    }
    remarks.iter().for_each(|remark| context.messages.warning(remark));
    let status = match ended {
        Ended::Exit(status) => u8::try_from(status).ok(),
        Ended::Signal(signal) => u8::try_from(128 + signal).ok(),
        _ => None,
    };
    Ok(Outcome { status, interrupted, is_whole })
}

fn not_whole(path: &Path, why: &str, lost: u64) -> String {
    let path = path.display();
    match lost {
        0 => format!("{path} is incomplete: {why}"),
        lost => format!(
            "{path} is incomplete ({why}): {} events are lost, and the trace marks the gap",
            count(lost as f64)
        ),
    }
}

/// How an image ended, in the words of a plain trace. `ended` is how the first process did, whose number is `first`.
fn ending(image: &TracedImage<Option<Sink>>, first: Option<i32>, ended: Ended) -> Ending {
    let (how, status) = match (&image.ending, ended) {
        (ImageEnding::Ended(status), _) => (format!("exited with status {status}"), Some(*status)),
        (ImageEnding::Exec, _) => ("replaced itself by exec".to_owned(), None),
        (ImageEnding::Killed, Ended::Signal(signal)) if Some(image.image.pid) == first => {
            (format!("killed by signal {signal}"), None)
        }
        (other, _) => (other.to_string(), None),
    };
    Ending { how, status, ..Ending::default() }
}

fn report(request: &Request, all: &[(PathBuf, Counts)], context: &Context) {
    let line = |path: &Path, counts: &Counts| {
        let each = counts.plain_bytes as f64 / counts.events.max(1) as f64;
        let requests = plural_count(counts.requests, "request");
        format!(
            "{}: {} events ({} bytes each before compression), {}, {} edges, {}{}",
            path.display(),
            count((counts.events - counts.lost) as f64),
            ratio(each),
            plural_count(counts.objects, "object"),
            count(counts.edges as f64),
            plural_count(counts.root_points, "root point"),
            if request.references { format!(", {requests}") } else { String::new() },
        )
    };
    let Some(((path, counts), others_made)) = all.split_first() else { return };
    context.messages.note(&line(path, counts));
    // The first of those that are as large.
    let largest = |of: &[(PathBuf, Counts)]| {
        let most = of.iter().rev().max_by_key(|(_, counts)| counts.events);
        most.map_or_else(PathBuf::new, |(path, _)| path.clone())
    };
    let what = match others_made {
        [] => "pointers between objects",
        made => {
            let folder = printable(&others(&request.output).display().to_string());
            let events: u64 = made.iter().map(|(_, counts)| counts.events).sum();
            context.messages.note(&format!(
                "and {} of other processes with {} events, in {folder}; the largest is {}",
                plural(made.len(), "trace"),
                count(events as f64),
                printable(&largest(made).display().to_string())
            ));
            "pointers between objects in the largest"
        }
    };
    context.messages.note(&format!("{what}: heaptoll trace stat {}", shell_path(&largest(all))));
}

fn plural_count(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number as f64), if number == 1 { "" } else { "s" })
}
