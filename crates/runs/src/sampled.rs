//! `heaptoll record --sample` and `heaptoll record attach`: a sampled heap profile of a program, at its end and while it runs.

use std::io;
use std::path::{Path, PathBuf};

use heaptoll_experiment::places::Places;
use heaptoll_profile_formats::{Choice, Count, Format, Instant};
use heaptoll_profiles::{Profile, Tracks};
pub use heaptoll_record::sampling::{Answer, ClientError, Command, MOST_MEAN, exchange};
use heaptoll_record::sampling::{NamedProcess, SampledOutcome, SamplingOptions, Settings, sample};
use heaptoll_record::{Children, Interrupt, RecordingOptions, folder_of_others};
use heaptoll_report::document::Document;
use heaptoll_report::terminal::{Style, render_document};
use heaptoll_report::{ReportError, files};
use heaptoll_scratch::Scratch;
use heaptoll_units::limits;

use crate::record::{ProgramChoice, manager_of, program};
pub use figures::{Estimated, Figures, Row, Value};
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_command::writable;

mod document;
mod figures;
mod messages;
mod profile;

/// Free bytes from which a folder in memory serves for the samples: a process takes some hundred KiB.
const IN_MEMORY: u64 = 16 << 20;

/// What is sampled, how, and where the profile goes.
#[derive(Debug, Clone)]
pub struct Request {
    /// The program.
    pub program: ProgramChoice,
    /// The manager below; the program's own without one.
    pub manager: Option<String>,
    /// The profile, in pprof's format; named for the program without one.
    pub output: Option<PathBuf>,
    /// Whether a file that exists is overwritten.
    pub force: bool,
    /// Mean distance of sample points, bytes: 1 samples every allocation.
    pub mean_bytes: u64,
    /// What random numbers begin with, for a run that repeats itself.
    pub seed: Option<u64>,
    /// Whether nothing is sampled until a client requests it.
    pub dormant: bool,
    /// Where clients connect.
    pub socket: Option<PathBuf>,
    /// Processes that the program starts.
    pub children: Children,
    /// Frames that a row shows.
    pub frames: usize,
    /// How tables are shown.
    pub style: Style,
}

/// A run that can begin.
pub struct Prepared {
    request: Request,
    record: heaptoll_record::Request,
    output: PathBuf,
    scratch: Scratch,
    _command: program::RecordedCommand,
}

/// What was sampled, of the process image that allocated most.
pub struct Outcome {
    /// The exit status of the program; `None` when the user stopped the run.
    pub status: Option<u8>,
    /// Whether everything was sampled and written.
    pub is_whole: bool,
    /// Its figures, and the document that shows them; none where nothing was sampled.
    pub shown: Option<(Figures, Document)>,
}

/// Finds and checks program, manager and files.
///
/// # Errors
/// The request cannot be carried out.
pub fn prepare(request: &Request, places: &Places, messages: &dyn Messages) -> Result<Prepared, Failure> {
    let manager = manager_of(request.manager.as_ref(), places, messages)?;
    let found = program::find(&request.program, places)?;
    let output =
        request.output.clone().unwrap_or_else(|| PathBuf::from(Format::Pprof.file_name(&found.name)));
    if output == Path::new("-") {
        return Err(Failure::Usage(
            "standard output is the program's: name a file for the profile with -o".into(),
        ));
    }
    check_output(&output, request.force)?;
    let mut record = heaptoll_record::Request {
        command: found.command.clone(),
        environment: found.environment.clone(),
        stdin: found.stdin.clone(),
        layer: places.layer("sample"),
        manager,
        output: output.clone(),
        options: RecordingOptions { children: request.children, ..RecordingOptions::default() },
        ..heaptoll_record::Request::default()
    };
    program::inspect(&mut record, request.manager.is_some(), messages)?;
    let scratch = scratch().map_err(|error| {
        let advice = limits::advice_or(&error, "set TMPDIR to one with space");
        Failure::Usage(format!("cannot make a folder for the samples: {error}; {advice}"))
    })?;
    Ok(Prepared { request: request.clone(), record, output, scratch, _command: found })
}

/// Refuses a profile that exists, unless `force`, and one that cannot be written.
///
/// # Errors
/// One of the two.
pub fn check_output(path: &Path, force: bool) -> Result<(), Failure> {
    if !force && path.is_file() {
        return Err(Failure::Usage(format!(
            "{} exists; --force overwrites it, -o FILE names another",
            path.display()
        )));
    }
    writable::check(path).map_err(|why| Failure::Usage(format!("cannot write {}: {why}", path.display())))
}

/// Writes a profile that a client got.
///
/// # Errors
/// It cannot be written: the disk is full.
pub fn write_profile(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Ok(files::write_atomically(path, |out| {
        out.write_all(bytes).map_err(|source| ReportError::Stream { form: "profile", source })
    })?)
}

fn scratch() -> io::Result<Scratch> {
    let in_memory = Path::new("/dev/shm");
    let free = |folder| rustix::fs::statvfs(folder).map_or(0, |about| about.f_bavail * about.f_frsize);
    if free(in_memory) >= IN_MEMORY
        && let Ok(scratch) = Scratch::make_in(in_memory)
    {
        return Ok(scratch);
    }
    Scratch::make()
}

impl Prepared {
    /// Through which the run is stopped, or a signal passed on to the program.
    pub fn interrupt(&self) -> &Interrupt {
        &self.record.interrupt
    }

    /// Runs the program to its end, and writes its profiles.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn run(&self, messages: &dyn Messages) -> Result<Outcome, Failure> {
        let options = SamplingOptions {
            settings: Settings {
                mean_bytes: self.request.mean_bytes,
                seed: self.request.seed,
                awake: !self.request.dormant,
            },
            socket: self.request.socket.clone(),
            folder: self.scratch.path().to_owned(),
        };
        let begun = std::time::Instant::now();
        let mut progress = messages::ProgramMessages { messages };
        let outcome = sample(&self.record, &options, &mut progress, &mut |processes, awake| {
            self.answer(processes, awake, begun.elapsed().as_nanos() as u64)
        })
        .map_err(|error| Failure::Refused(Box::new(error)))?;
        Ok(self.finish(&outcome, messages))
    }

    /// What a client gets.
    fn answer(&self, processes: &[NamedProcess], awake: bool, wall_ns: u64) -> Result<Answer, String> {
        let Some(most) = largest(processes) else {
            let why =
                if awake { "no allocation was sampled yet" } else { "it is dormant and was never started" };
            return Err(format!("there is no profile: {why}"));
        };
        let (figures, profile) = self.figures(&processes[most], wall_ns);
        let mut bytes = Vec::new();
        write_pprof(&profile, &mut bytes).map_err(|error| error.to_string())?;
        let style = Style { color: false, width: self.request.style.width, ..self.request.style };
        let text = render_document(&document::document(&figures, &profile), &style);
        Ok(Answer { text, profile: bytes })
    }

    fn figures(&self, process: &NamedProcess, wall_ns: u64) -> (Figures, Profile) {
        let run = figures::Run {
            command: &self.record.command,
            manager: &self.record.manager,
            mean_bytes: self.request.mean_bytes,
            frames: self.request.frames,
        };
        let figures = figures::figures(process, &run);
        let profile = profile::profile(process, &figures, wall_ns);
        (figures, profile)
    }

    fn finish(&self, outcome: &SampledOutcome, messages: &dyn Messages) -> Outcome {
        let mut is_whole = outcome.warnings.is_empty();
        let most = largest(&outcome.processes);
        let mut shown = None;
        let mut written = Vec::new();
        for (at, process) in outcome.processes.iter().enumerate() {
            let (figures, profile) = self.figures(process, outcome.wall.as_nanos() as u64);
            let path = if Some(at) == most { self.output.clone() } else { self.other(process.pid, &written) };
            match write_file(&path, &profile) {
                Ok(()) => written.push(path),
                Err(error) => {
                    messages.error(&error.to_string());
                    is_whole = false;
                }
            }
            if Some(at) == most {
                let document = document::document(&figures, &profile);
                shown = Some((figures, document));
            }
        }
        if outcome.status.is_none() {
            messages.note("stopped: the program goes on, and its profile ends here");
        }
        messages::summary(outcome, &written, &self.output, self.request.mean_bytes, messages);
        if outcome.images == 0 {
            is_whole = false;
        }
        Outcome { status: outcome.status, is_whole, shown }
    }

    /// The profile of another process image: `FILE.children/PID.pb.gz`, and `PID.2.pb.gz` after another exec.
    fn other(&self, pid: i32, written: &[PathBuf]) -> PathBuf {
        let folder = folder_of_others(&self.output);
        // A failure shows when the file is made.
        let _ = std::fs::create_dir(&folder);
        let name = |number: u32| match number {
            1 => folder.join(format!("{pid}.pb.gz")),
            more => folder.join(format!("{pid}.{more}.pb.gz")),
        };
        (1..).map(name).find(|path| !written.contains(path)).unwrap_or_else(|| name(1))
    }
}

/// The process image with the most estimated bytes; of equal ones the first.
fn largest(processes: &[NamedProcess]) -> Option<usize> {
    let bytes = |at: &usize| processes[*at].total().allocated.bytes;
    (0..processes.len()).rev().max_by(|a, b| bytes(a).total_cmp(&bytes(b)))
}

fn write_pprof(profile: &Profile, out: &mut dyn io::Write) -> io::Result<()> {
    let choice = Choice { instant: Instant::End, count: Count::LiveBytes };
    heaptoll_profile_formats::write(Format::Pprof, profile, &Tracks::default(), choice, out)
}

fn write_file(path: &Path, profile: &Profile) -> Result<(), ReportError> {
    files::write_atomically(path, |out| {
        write_pprof(profile, out).map_err(|source| ReportError::Stream { form: "profile", source })
    })
}
