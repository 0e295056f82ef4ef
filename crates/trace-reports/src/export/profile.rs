//! The call stacks of a trace in the format of a viewer of profiles.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

pub use heaptoll_profile_formats::{Choice, Count, Format, Instant};
use heaptoll_profiles::{Builder, Measure, Profile, Tracks};
use heaptoll_report::{ReportError, files};
use heaptoll_trace::{Header, Memory, Tables};
use heaptoll_trace_analysis::feed::feed;
pub use heaptoll_trace_analysis::profile::Window;
use heaptoll_trace_analysis::profile::{EACH_OBJECT, StackSums};
use heaptoll_trace_analysis::subject::Subject;
use thiserror::Error;

use super::{target, tracks};
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_command::foreign::{self, ReadProfile};
use heaptoll_command::subject::incomplete;
use heaptoll_command::trace_source;

/// Standard output as a file.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// What to export.
#[derive(Debug, Clone)]
pub struct ProfileRequest {
    /// The trace; `-` is standard input.
    pub trace: PathBuf,
    /// The file to write, `-` is standard output; named for the trace without one.
    pub output: Option<PathBuf>,
    /// Whether a file that exists is replaced.
    pub force: bool,
    /// Memory that the objects of the trace may take, bytes.
    pub memory_limit_bytes: u64,
    /// The format.
    pub format: Format,
    /// The part of the trace.
    pub window: Window,
    /// What is chosen of the profile.
    pub choice: Choice,
}

/// Why stacks are not exported.
#[derive(Debug, Error)]
enum NoProfile {
    #[error(
        "{0} has no call stacks: record the program again with `heaptoll record --sites`. (`--to perfetto` shows live \
        bytes over time without them.)"
    )]
    NotRecorded(String),
    #[error("{0} has lost its call stacks: the recording or the file was cut off. Record the program again")]
    Lost(String),
    #[error(
        "{name} ends after {end_s:.3} s: nothing was allocated from {from_s:.3} s on; choose an earlier --between"
    )]
    AfterTheEnd { name: String, end_s: f64, from_s: f64 },
    #[error(
        "{name} is a profile of sums, without the times of events: {what}; `heaptoll record --sites` records them"
    )]
    NoTimes { name: String, what: &'static str },
    #[error("the profile has nothing of its peak: leave out --at to get what was live when it was written")]
    NoPeak,
    #[error("{0} is binary, and standard output is a terminal: name a file with -o, or redirect the output")]
    Terminal(&'static str),
}

impl From<NoProfile> for Failure {
    fn from(error: NoProfile) -> Failure {
        Failure::Refused(Box::new(error))
    }
}

/// Writes the call stacks of a trace. Returns whether the trace is whole; of a damaged one what is whole is exported.
///
/// # Errors
/// It is no trace, has no call stacks, or cannot be read; the file exists, or cannot be written.
pub fn run(request: &ProfileRequest, messages: &dyn Messages) -> Result<bool, Failure> {
    let path = output(request)?;
    let Exported { profile, tracks, is_whole, warnings, remarks } = exported(request)?;
    let choice = available(request.choice, request.format, &profile, messages)?;
    files::write_atomically(&path, |out| {
        heaptoll_profile_formats::write(request.format, &profile, &tracks, choice, out)
            .map_err(|source| ReportError::Stream { form: "profile", source })
    })?;
    if !is_output(&path) {
        let stacks = profile.stacks().len();
        messages.note(&format!("wrote {stacks} call stacks to {}", path.display()));
    }
    remarks.iter().for_each(|remark| messages.note(&format!("{}: {remark}", request.trace.display())));
    warnings.iter().for_each(|warning| messages.warning(warning));
    Ok(is_whole)
}

/// What is exported, of a trace or of another tool's profile.
pub(super) struct Exported {
    pub(super) profile: Profile,
    pub(super) tracks: Tracks,
    /// Whether nothing of the trace is damaged or missing.
    pub(super) is_whole: bool,
    /// What is damaged or missing.
    pub(super) warnings: Vec<String>,
    /// What the profile's reader must know.
    pub(super) remarks: Vec<String>,
}

/// The call stacks of a trace, or those of a profile of another tool.
///
/// # Errors
/// It is neither, has no call stacks, or cannot be read; a profile has not what is requested.
pub(super) fn exported(request: &ProfileRequest) -> Result<Exported, Failure> {
    if let Some(found) = foreign::profile(&request.trace, request.memory_limit_bytes)? {
        let name = request.trace.display().to_string();
        if request.window != Window::default() {
            return Err(NoProfile::NoTimes { name, what: "--between has no meaning" }.into());
        }
        if request.format.has_lives() {
            return Err(NoProfile::NoTimes { name, what: "--to firefox would be empty" }.into());
        }
        let ReadProfile { profile, remarks } = found;
        return Ok(Exported {
            profile,
            tracks: Tracks::default(),
            is_whole: true,
            warnings: Vec::new(),
            remarks,
        });
    }
    let (profile, tracks, tables) = profile(request)?;
    let subject = Subject::new(&tables, 0);
    let is_whole = tables.warnings.is_empty() && tables.gaps.is_empty();
    Ok(Exported { profile, tracks, is_whole, warnings: incomplete(&subject), remarks: Vec::new() })
}

/// The choice, where the profile has it: another tool's has not all figures.
///
/// # Errors
/// It has nothing that was alive at the chosen instant.
fn available(
    choice: Choice,
    format: Format,
    profile: &Profile,
    messages: &dyn Messages,
) -> Result<Choice, Failure> {
    let has = |measure: Measure| profile.column(measure).is_some();
    // Of a trace without call stacks, which has none of them, a timeline is shown.
    if profile.measures().is_empty() {
        return Ok(choice);
    }
    if choice.instant == Instant::Peak && !choice.instant.measures().into_iter().any(has) {
        return Err(NoProfile::NoPeak.into());
    }
    let measures = |choice: Choice| {
        let all = [Count::AllocatedObjects, Count::AllocatedBytes, Count::LiveObjects, Count::LiveBytes];
        all.map(|count| (count, count.measure(choice.instant)))
    };
    let missing: Vec<&str> = measures(choice)
        .into_iter()
        .filter(|(_, measure)| !has(*measure))
        .map(|(_, measure)| measure.title())
        .collect();
    if !missing.is_empty()
        && matches!(format, Format::Pprof | Format::Dhat | Format::Callgrind | Format::Perfetto)
    {
        messages.note(&format!("the profile has no {}: 0 in the file", missing.join(", ")));
    }
    if has(choice.count.measure(choice.instant)) {
        return Ok(choice);
    }
    // Bytes rather than objects, what is alive rather than what was.
    let found = measures(choice).into_iter().rev().find(|(_, measure)| has(*measure));
    let Some((count, measure)) = found else { return Ok(choice) };
    if matches!(format, Format::Folded | Format::Speedscope) {
        let wanted = choice.count.measure(choice.instant).title();
        messages.note(&format!("the profile has no {wanted}: it shows {} instead", measure.title()));
    }
    Ok(Choice { count, ..choice })
}

/// The profile of a trace, what a timeline shows next to it, and the tables of the trace.
///
/// # Errors
/// It is no trace, has no call stacks, or cannot be read; or ends before the requested part.
fn profile(request: &ProfileRequest) -> Result<(Profile, Tracks, Tables), Failure> {
    let memory = Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: EACH_OBJECT as u64 };
    let reader = trace_source::open(&request.trace, memory)?;
    let name = request.trace.display().to_string();
    let needs_stacks = !request.format.has_tracks();
    // A header that is damaged is the default one, without a command.
    if needs_stacks && !reader.header().sites && *reader.header() != Header::default() {
        return Err(NoProfile::NotRecorded(name).into());
    }
    let mut sums = StackSums::new(request.window, request.format.has_lives());
    let mut has_events = false;
    let tables = feed(reader, |batch| {
        has_events |= !batch.events.is_empty();
        sums.batch(batch);
    })
    .map_err(trace_source::refused)?;
    let sites = tables.sites.clone().unwrap_or_default();
    // A program that allocated nothing has a whole trace without a stack.
    let has_nothing = !has_events && tables.ending.is_some();
    if needs_stacks && sites.frames.is_empty() && !has_nothing {
        return Err(NoProfile::Lost(name).into());
    }
    let end_ns = tables.ending.as_ref().map_or(0, |ending| ending.time_ns).max(sums.time_ns());
    let from_ns = request.window.from_ns;
    if from_ns > 0 && from_ns >= end_ns {
        let seconds = |ns: u64| ns as f64 / 1e9;
        return Err(NoProfile::AfterTheEnd { name, end_s: seconds(end_ns), from_s: seconds(from_ns) }.into());
    }
    let (mut profile, live) = sums.finish(&tables.header, &sites, end_ns);
    if !tables.header.sites && tables.sites.is_none() {
        // All that it would show is one frame which states that there are none.
        let mut without_stacks = Builder::default();
        without_stacks.subject(profile.subject);
        profile = without_stacks.finish();
    }
    let tracks = tracks::of(&tables, live, request.window);
    Ok((profile, tracks, tables))
}

fn is_output(path: &Path) -> bool {
    path == Path::new(STANDARD_OUTPUT)
}

/// The file to write, which can be.
fn output(request: &ProfileRequest) -> Result<PathBuf, Failure> {
    if request.output.as_deref() == Some(Path::new("-")) {
        if request.format.is_binary() && io::stdout().is_terminal() {
            let name = if request.format == Format::Pprof { "pprof's format" } else { "Perfetto's format" };
            return Err(NoProfile::Terminal(name).into());
        }
        return Ok(STANDARD_OUTPUT.into());
    }
    let file_name = |name: &str| request.format.file_name(name);
    let path = target::path(&request.trace, request.output.as_deref(), file_name)?;
    target::check(&path, request.force)?;
    Ok(path)
}
