//! `heaptoll record --graph`: a program's run under the tracer, as traces with pointers.

use std::path::{Path, PathBuf};

use heaptoll_graph_record::{Counts, Recorder};
use heaptoll_reftrace_host::{Image, ImageEnding, Options, TracedImage};
use heaptoll_report::format::{count, plural, printable, ratio, shell_path};
use heaptoll_trace::graph::Writer;
use heaptoll_trace::{Ending, GraphSettings, Header, Settings, TraceError, TraceFile};

use crate::clock;
use crate::context::Context;
use crate::failure::Failure;
use crate::traced::{self, Cell, Run, plan, remarks_of};

/// Frames recorded of a call site.
const FRAMES: u32 = 12;
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
}

/// What was recorded.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status of the program; none where a signal or heaptoll ended it.
    pub status: Option<u8>,
    /// Whether every trace is whole.
    pub is_whole: bool,
}

/// The trace of one image under way.
type Sink = Recorder<TraceFile>;

/// Runs the program and writes its traces: that of the first process image into `output`, the others into the folder
/// `output` with `.children` behind.
///
/// # Errors
/// See [`plan`]; several programs or managers; a trace cannot be made.
pub fn record(request: &Request, context: &Context) -> Result<Outcome, Failure> {
    check_output(request)?;
    let mut plan = plan(&request.traced, context)?;
    let cell = match &plan.cells[..] {
        [one] => one.clone(),
        all => {
            return Err(Failure::Usage(format!(
                "a trace with pointers is of one program under one manager, and {} are requested",
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
    let mut files = Files { request, cell: &cell, made: Vec::new(), failed: None };
    let run = plan.run_one(&cell, &options, context, |image| files.begin(image))?;
    let Files { made, failed, .. } = files;
    if let Some(error) = failed {
        return Err(Failure::Refused(Box::new(error)));
    }
    finish(request, &cell, run, made, context)
}

fn check_output(request: &Request) -> Result<(), Failure> {
    if request.output == Path::new("-") {
        return Err(Failure::Usage("a trace with pointers goes into a file: name one with -o FILE".into()));
    }
    if !request.force && request.output.exists() {
        let name = request.output.display().to_string();
        return Err(Failure::Refused(Box::new(TraceError::Exists { name })));
    }
    Ok(())
}

/// Makes the files of the traces.
struct Files<'a> {
    request: &'a Request,
    cell: &'a Cell,
    made: Vec<PathBuf>,
    failed: Option<TraceError>,
}

impl Files<'_> {
    /// Begins an image's trace. None where its file cannot be made; the first error is kept.
    fn begin(&mut self, image: &Image) -> Option<Sink> {
        let path = self.path(image);
        match self.make(&path, image) {
            Ok(recorder) => {
                self.made.push(path);
                Some(recorder)
            }
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    fn path(&self, image: &Image) -> PathBuf {
        if self.made.is_empty() {
            return self.request.output.clone();
        }
        let folder = others(&self.request.output);
        match image.number {
            0 => folder.join(format!("{}.graph", image.pid)),
            number => folder.join(format!("{}.{}.graph", image.pid, number + 1)),
        }
    }

    fn make(&self, path: &Path, image: &Image) -> Result<Sink, TraceError> {
        if let Some(folder) = path.parent().filter(|_| !self.made.is_empty()) {
            std::fs::create_dir_all(folder).map_err(|source| TraceError::System {
                action: "make",
                name: folder.display().to_string(),
                source,
            })?;
        }
        let file = TraceFile::create(path, self.request.force)?;
        let writer = Writer::new(file, &self.header(image), &Settings::default())?;
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
            machine: crate::record::machine(),
            graph: Some(GraphSettings {
                page_bytes: rustix::param::page_size() as u64,
                roots_every_bytes: self.request.roots_every_bytes.map_or(FIRST_DISTANCE, u64::from),
                references: self.request.references,
            }),
            ..Header::default()
        }
    }
}

/// The folder of the traces of other images than the first.
fn others(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".children");
    PathBuf::from(name)
}

/// Completes the traces, and reports what is in them.
fn finish(
    request: &Request,
    cell: &Cell,
    run: Run<Option<Sink>>,
    made: Vec<PathBuf>,
    context: &Context,
) -> Result<Outcome, Failure> {
    let Run { mut traced, row } = run;
    let mut is_whole = traced.is_whole();
    let remarks = remarks_of(cell, &traced, &row.outcome);
    let mut all = Vec::new();
    for (image, path) in std::mem::take(&mut traced.images).into_iter().zip(made) {
        let (ending, sink) = (ending(&image), image.sink);
        let Some(recorder) = sink else { continue };
        let (_, counts, refused) =
            recorder.finish(&ending).map_err(|error| Failure::Trouble(Box::new(error)))?;
        if let Some(error) = refused {
            is_whole = false;
            context.messages.error(&format!("{} is not whole: {error}", path.display()));
        }
        all.push((path, counts));
    }
    report(request, &all, context);
    remarks.iter().for_each(|remark| context.messages.warning(remark));
    let status = match traced.finished.ended {
        heaptoll_launcher::Ended::Exit(status) => u8::try_from(status).ok(),
        heaptoll_launcher::Ended::Signal(signal) => u8::try_from(128 + signal).ok(),
        _ => None,
    };
    Ok(Outcome { status, is_whole })
}

fn ending(image: &TracedImage<Option<Sink>>) -> Ending {
    let status = match image.ending {
        ImageEnding::Ended(status) => Some(status),
        _ => None,
    };
    Ending { how: image.ending.to_string(), status, ..Ending::default() }
}

fn report(request: &Request, all: &[(PathBuf, Counts)], context: &Context) {
    let line = |path: &Path, counts: &Counts| {
        let each = counts.plain_bytes as f64 / counts.events.max(1) as f64;
        let requests = plural_count(counts.requests, "request");
        format!(
            "{}: {} events ({} bytes each before compression), {}, {} edges, {}{}",
            path.display(),
            count(counts.events as f64),
            ratio(each),
            plural_count(counts.objects, "object"),
            count(counts.edges as f64),
            plural_count(counts.root_points, "root point"),
            if request.references { format!(", {requests}") } else { String::new() },
        )
    };
    let Some(((path, counts), others_made)) = all.split_first() else { return };
    context.messages.note(&line(path, counts));
    if !others_made.is_empty() {
        let folder = printable(&others(&request.output).display().to_string());
        context
            .messages
            .note(&format!("and {} of other process images in {folder}", plural(others_made.len(), "trace")));
    }
    if let Some((path, _)) = all.iter().max_by_key(|(_, counts)| counts.events) {
        context.messages.note(&format!("what it points to: heaptoll stat {}", shell_path(path)));
    }
}

fn plural_count(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number as f64), if number == 1 { "" } else { "s" })
}
