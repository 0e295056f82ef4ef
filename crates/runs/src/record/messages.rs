//! Messages about a recording.

use std::ffi::OsString;

use heaptoll_preflight::{is_fault, killed_by, own_heap};
use heaptoll_record::{Progress, Recording, RecordingOutcome, Request, folder_of_others};
use heaptoll_report::format::{count, mib_from_bytes, plural, printable, ratio, seconds, shell_path};
use heaptoll_trace_analysis::subject::PYTHONMALLOC;
use heaptoll_units::{first_few, limits};

use super::system_calls::{RECORDER, SIGSYS, SITES, forbidden};
use heaptoll_command::context::Messages;

/// Passes on the messages of a recording under way.
pub struct ProgressMessages<'a> {
    /// Where they go.
    pub messages: &'a dyn Messages,
}

impl Progress for ProgressMessages<'_> {
    fn waits_for(&mut self, pids: &[i32]) {
        const SHOWN: usize = 8;
        self.messages.note(&format!(
            "the program has ended, but {} it started {} not: {}; Ctrl-C ends the recording without them",
            plural(pids.len(), "process").replace("processs", "processes"),
            if pids.len() == 1 { "has" } else { "have" },
            first_few(pids.iter().map(|pid| name(*pid)), SHOWN)
        ));
    }

    fn trouble(&mut self, text: &str) {
        self.messages.warning(&format!("{text}; the program goes on"));
    }
}

fn name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} ({pid})", printable(name.trim()))
}

/// The summary at the end. For a temporary trace it has only what went wrong.
pub fn summary(request: &Request, recorded: &RecordingOutcome, is_temporary: bool, messages: &dyn Messages) {
    let Some(first) = recorded.recordings.first() else { return };
    if !is_temporary {
        traces(request, recorded, first, messages);
        own_heaps(request, recorded).iter().for_each(|sentence| messages.warning(sentence));
    }
    troubles(request, recorded, first, is_temporary, messages);
}

/// Programs whose objects are not all malloc's, each in a sentence.
fn own_heaps(request: &Request, recorded: &RecordingOutcome) -> Vec<String> {
    let environment = environment(&request.command, &request.environment);
    let mut sentences = Vec::new();
    for recording in recorded.recordings.iter().filter(|recording| recording.events > 0) {
        let sentence = own_heap(&recording.exe, &environment);
        sentences.extend(sentence.filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
}

/// The variables that a program has: those of this process, those set for it, and of its command, `env NAME=VALUE
/// program`.
fn environment(command: &[OsString], set: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let in_command = command.iter().filter_map(|word| {
        let (name, value) = word.to_str()?.split_once('=')?;
        Some((name.into(), value.into()))
    });
    std::env::vars_os().chain(set.iter().cloned()).chain(in_command).collect()
}

/// The list of traces.
fn traces(request: &Request, recorded: &RecordingOutcome, first: &Recording, messages: &dyn Messages) {
    let (others, _) = others(recorded);
    messages.note(&format!("{} {}", line(first), wall(recorded)));
    match &others[..] {
        [] => {}
        [one] => messages.note(&format!("{}, of {}", line(one), program(one))),
        many => {
            let most = many.iter().max_by_key(|recording| recording.events);
            let events: u64 = many.iter().map(|recording| recording.events).sum();
            messages.note(&format!(
                "and {} of processes that it started or became with {} events, in {}; the largest is {}",
                plural(many.len(), "trace"),
                count(events as f64),
                folder_of_others(&request.output).display(),
                most.map_or_else(String::new, |most| format!(
                    "{}, of {}",
                    most.path.display(),
                    program(most)
                ))
            ));
        }
    }
}

/// Process images other than the first: with a trace, and without one.
fn others(recorded: &RecordingOutcome) -> (Vec<&Recording>, Vec<&Recording>) {
    let others = recorded.recordings.iter().skip(1);
    others.partition(|recording| !recording.path.as_os_str().is_empty())
}

/// The words of a recording's end that a signal caused.
const KILLED: &str = "killed by signal";

/// What went wrong, or which command reads the trace.
fn troubles(
    request: &Request,
    recorded: &RecordingOutcome,
    first: &Recording,
    is_temporary: bool,
    messages: &dyn Messages,
) {
    let (others, traceless) = others(recorded);
    const SHOWN: usize = 4;
    let troubled: Vec<_> = std::iter::once(first).chain(others).filter(|one| one.trouble.is_some()).collect();
    for recording in troubled.iter().take(SHOWN) {
        let why = recording.trouble.as_deref().unwrap_or_default();
        let path = recording.path.display();
        messages.error(&match recording.lost {
            0 => format!("{path} is incomplete: {why}"),
            lost => format!(
                "{path} is incomplete ({why}): {} events are lost, and the trace marks the gap",
                count(lost as f64)
            ),
        });
    }
    if troubled.len() > SHOWN {
        messages.error(&format!("{} more traces are incomplete", troubled.len() - SHOWN));
    }
    if let [one, more @ ..] = &traceless[..] {
        let why = one.trouble.as_deref().unwrap_or_default();
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        messages.error(&format!("{}{more}: not recorded ({why})", program(one)));
    }
    signalled(request, recorded, messages);
    // Frees may lie in a gap.
    let unseen: u64 =
        recorded.recordings.iter().filter(|one| one.lost == 0).map(|one| one.unseen_frees).sum();
    if unseen > 0 {
        messages.warning(&format!(
            "the recorder missed the frees of {}: a library opened with RTLD_DEEPBIND, or bound to the C library \
             otherwise, calls the C library's free directly",
            match unseen {
                1 => "1 block".to_owned(),
                many => format!("{} blocks", count(many as f64)),
            }
        ));
    }
    for warning in &recorded.warnings {
        messages.warning(warning);
    }
    let most = recorded.recordings.iter().max_by_key(|recording| recording.events);
    if let Some(most) = most.filter(|most| most.events > 0) {
        if !is_temporary {
            messages.note(&format!("what it allocated: heaptoll trace stat {}", shell_path(&most.path)));
        }
    } else if recorded.is_empty() {
        let guess = match limits::memory() {
            // The end itself is the reason.
            _ if first.how.contains(KILLED) => String::new(),
            Some(limits) => format!("; the layer may have had no memory: {limits}"),
            None => {
                "; it may allocate nothing, have an allocator of its own inside, or have dropped LD_PRELOAD"
                    .into()
            }
        };
        messages.error(&format!(
            "no allocation arrived: {} {} before it called the recording layer{guess}",
            program(first),
            first.how
        ));
    } else {
        messages.note(&format!("{} did not call malloc: the ledger shows its mappings", program(first)));
    }
}

/// Warns of the program's death by a signal, and of a fault or limit that ended a process that it started.
fn signalled(request: &Request, recorded: &RecordingOutcome, messages: &dyn Messages) {
    let died = |(at, recording): (usize, _)| {
        let signal = signal(recording)?;
        (at == 0 || is_fault(signal)).then_some((recording, signal))
    };
    let died: Vec<(&Recording, i32)> = recorded.recordings.iter().enumerate().filter_map(died).collect();
    if died.iter().any(|(_, signal)| *signal == SIGSYS) {
        let of_sites = if request.options.sites || request.options.ledger { SITES } else { &[] };
        messages.warning(&forbidden("layer", &[RECORDER, of_sites]));
    }
    if let [(one, signal), more @ ..] = &died[..] {
        let advice = match request.manager.name.as_str() {
            "glibc" => String::new(),
            other => format!(" under {other}; try without -m to find out whether it is the cause"),
        };
        let more = match more.len() {
            0 => String::new(),
            more => format!("; signals killed {more} more of its processes"),
        };
        messages.warning(&format!("{}: {}{advice}{more}", program(one), killed_by(*signal)));
    }
}

/// The signal that killed a process.
fn signal(recording: &Recording) -> Option<i32> {
    recording.how.split_once(KILLED)?.1.trim().parse().ok()
}

fn line(recording: &Recording) -> String {
    let each = recording.bytes as f64 / recording.events.max(1) as f64;
    let size = if recording.bytes < 1 << 20 {
        format!("{} KiB", count((recording.bytes as f64 / 1024.0).ceil()))
    } else {
        format!("{} MiB", mib_from_bytes(recording.bytes as f64))
    };
    let per_event =
        if recording.events < 10_000 { String::new() } else { format!(", {} bytes an event", ratio(each)) };
    format!("{}: {} events, {size}{per_event}", recording.path.display(), count(recording.events as f64))
}

fn wall(recorded: &RecordingOutcome) -> String {
    format!("in {} s", seconds(recorded.wall.as_secs_f64()))
}

fn program(recording: &Recording) -> String {
    let name = recording.exe.file_name().map_or_else(|| "the program".into(), |name| name.to_string_lossy());
    match recording.pid {
        0 => format!("{name} (a process of unknown number)"),
        pid => format!("{name} (process {pid})"),
    }
}

/// The machine, for a trace's header, and what of the program's environment decides which objects are malloc's.
pub fn machine(command: &[OsString], set: &[(OsString, OsString)]) -> Vec<(String, String)> {
    let machine = heaptoll_experiment::machine::read();
    let environment = environment(command, set);
    let python = environment.iter().rev().find(|(name, _)| name == PYTHONMALLOC);
    let python = python
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    let facts = [
        ("cpu", machine.cpu),
        ("cores", machine.cores.to_string()),
        ("memory_kib", machine.memory_kib.to_string()),
        ("kernel", machine.kernel),
        ("distribution", machine.distribution),
        ("libc", machine.libc),
        ("thp", machine.thp),
    ]
    .map(|(name, value)| (name.to_string(), value));
    facts.into_iter().chain(python).collect()
}
