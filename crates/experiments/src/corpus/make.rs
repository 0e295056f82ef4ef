//! Making a corpus: program by program, with the index written after each, so that it goes on where it was stopped.

use std::path::{Path, PathBuf};

use heaptoll_catalog::Size;
use heaptoll_experiment::machine;
use heaptoll_record::{RecordingOptions, RecordingOutcome};
use heaptoll_report::format::{count, mib_from_bytes, plural};
use heaptoll_report::{ReportError, files};

use super::figures::{Figures, Missing, Program, Trace};
use super::{CorpusError, INDEX, PAGE, Selected, check, licence, origin, page};
use crate::cluster::digests;
use crate::cluster::role::Role;
use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::record::{self, ProgramChoice};
use heaptoll_runs::workload;

/// What to record.
#[derive(Debug, Clone)]
pub struct Request {
    /// The folder.
    pub folder: PathBuf,
    /// The programs.
    pub programs: Vec<Selected>,
    /// A folder with further entries of the catalog.
    pub catalog: Option<PathBuf>,
    /// The most that the traces of one program may take, bytes.
    pub most_bytes: u64,
    /// SPDX's identifier of the traces' licence.
    pub license: String,
}

/// Records what the folder does not have yet, and gives its index.
///
/// # Errors
/// The folder cannot be used, or Ctrl-C; what was recorded until then is kept.
pub fn make(request: &Request, context: &Context) -> Result<Figures, Failure> {
    let folder = &request.folder;
    std::fs::create_dir_all(folder).map_err(|cause| write_error(folder, cause))?;
    let mut corpus = Figures::read(folder)
        .map_err(refused)?
        .unwrap_or_else(|| Figures { created_unix_s: clock::now().as_secs_f64(), ..Figures::default() });
    corpus.license.clone_from(&request.license);
    corpus.license_statement = licence::statement(&request.license);
    corpus.missing.clear();
    for selected in &request.programs {
        let name = &selected.program;
        if is_there(&corpus, name, folder) {
            context.messages.note(&format!("{name} is there"));
            continue;
        }
        corpus.programs.retain(|program| program.name != *name);
        match recorded(selected, request, context) {
            Ok(program) => {
                context.messages.note(&format!(
                    "{name}: {} events in {} MiB, {}",
                    count(program.events() as f64),
                    mib_from_bytes(program.bytes() as f64),
                    plural(program.traces.len(), "trace")
                ));
                corpus.programs.push(program);
            }
            Err(_) if context.interrupt.is_set() => {
                write(&corpus, folder)?;
                return Err(Failure::Interrupted);
            }
            Err(why) => {
                context.messages.warning(&why);
                corpus.missing.push(Missing { name: name.clone(), why });
            }
        }
        corpus.programs.sort_by(|one, other| one.name.cmp(&other.name));
        write(&corpus, folder)?;
    }
    write(&corpus, folder)?;
    Ok(corpus)
}

/// Whether a program's traces are there as the index has them.
fn is_there(corpus: &Figures, name: &str, folder: &Path) -> bool {
    let found = corpus.programs.iter().find(|program| program.name == name);
    found.is_some_and(|program| program.traces.iter().all(|trace| check::fault(trace, folder).is_none()))
}

/// Records one program; why not, where it cannot be.
fn recorded(selected: &Selected, request: &Request, context: &Context) -> Result<Program, String> {
    let name = &selected.program;
    let text = |error: Failure| match error.to_string() {
        named if named.starts_with(name.as_str()) => named,
        other => format!("{name}: {other}"),
    };
    let catalog = workload::catalog(context.places, request.catalog.as_deref()).map_err(text)?;
    let entry = catalog.find(name).map_err(|error| text(error.into()))?;
    let size = size_of(entry.sizes(), selected.size)
        .ok_or_else(|| format!("{name}: it has no input of size {} or smaller", selected.size.name()))?;
    let about = entry.about().to_owned();
    let output = request.folder.join(format!("{name}.heaptoll"));
    let wanted = record::Request {
        program: ProgramChoice {
            command: vec![],
            name: Some(name.clone()),
            size,
            catalog: request.catalog.clone(),
            stdin: None,
        },
        manager: None,
        output: Some(output.clone()),
        force: true,
        options: RecordingOptions { sites: true, ..RecordingOptions::default() },
        is_temporary: true,
    };
    let prepared = record::prepare(&wanted, context.places, context.messages).map_err(text)?.silenced();
    let subject = prepared.subject();
    let mut preloaded = subject.manager.preload.clone();
    preloaded.push(subject.layer.clone());
    let took_part =
        origin::files(&subject.command, &subject.environment, subject.stdin.as_deref(), &preloaded)
            .map_err(|error| format!("{name}: {error}"))?;
    let progress = context.messages.progress(None);
    progress.set_text(&format!("recording {name}"));
    let (command, manager) = (words(&subject.command), subject.manager.clone());
    let outcome = prepared.record(context.messages).map_err(text)?;
    drop(progress);
    if let Some(why) = useless(&outcome, request.most_bytes) {
        remove(&outcome);
        return Err(format!("{name}: {why}"));
    }
    Ok(Program {
        name: name.clone(),
        about,
        size: size.name().into(),
        command,
        manager: manager.name,
        manager_version: manager.version,
        machine: machine::read(),
        recorded_unix_s: clock::now().as_secs_f64(),
        recorded_by: env!("CARGO_PKG_VERSION").into(),
        traces: traces(&outcome, &request.folder).map_err(|error| format!("{name}: {error}"))?,
        packages: origin::packages(&took_part),
        files: took_part,
    })
}

fn words(command: &[std::ffi::OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The largest size that is no larger than what was requested.
fn size_of(sizes: impl Iterator<Item = Size>, most: Size) -> Option<Size> {
    sizes.filter(|size| *size <= most).max()
}

/// Why a recording is not kept.
fn useless(outcome: &RecordingOutcome, most_bytes: u64) -> Option<String> {
    if outcome.status != Some(0) {
        let status =
            outcome.status.map_or("was stopped".into(), |status| format!("ended with status {status}"));
        return Some(format!("the recorded run {status}"));
    }
    if !outcome.is_whole() {
        let trouble = outcome.recordings.iter().find_map(|one| one.trouble.clone());
        let why = trouble.or_else(|| outcome.warnings.first().cloned()).unwrap_or_default();
        return Some(format!("the recording is incomplete: {why}"));
    }
    if outcome.events() == 0 {
        return Some("no call of malloc was recorded".into());
    }
    let bytes = outcome.bytes();
    (bytes > most_bytes).then(|| {
        let mib = |bytes: u64| mib_from_bytes(bytes as f64);
        format!("its traces take {} MiB, but may take {}: --most allows more", mib(bytes), mib(most_bytes))
    })
}

/// Takes the traces of a recording away that is not kept. What cannot be removed is in no index.
fn remove(outcome: &RecordingOutcome) {
    for one in &outcome.recordings {
        let _ = std::fs::remove_file(&one.path);
    }
}

fn traces(outcome: &RecordingOutcome, folder: &Path) -> Result<Vec<Trace>, String> {
    let trace = |one: &heaptoll_record::Recording| {
        let found = digests::digest(&one.path, Role::Input).map_err(|error| error.to_string())?;
        let path = one.path.strip_prefix(folder).unwrap_or(&one.path).display().to_string();
        let executable = one.exe.display().to_string();
        Ok(Trace { path, bytes: found.bytes, sha256: found.sha256, events: one.events, executable })
    };
    outcome.recordings.iter().map(trace).collect()
}

/// Writes the index and the page, each whole or not at all.
fn write(corpus: &Figures, folder: &Path) -> Result<(), Failure> {
    let encoded = |error: serde_json::Error| ReportError::Encode { form: "JSON", detail: error.to_string() };
    put(&folder.join(INDEX), &corpus.text().map_err(encoded)?)?;
    put(&folder.join(PAGE), &page::text(corpus))
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    Ok(files::write_atomically(path, |out| {
        out.write_all(text.as_bytes()).map_err(|source| ReportError::Stream { form: "corpus", source })
    })?)
}

fn write_error(path: &Path, cause: std::io::Error) -> Failure {
    refused(CorpusError::Write { path: path.to_path_buf(), cause })
}

fn refused(error: CorpusError) -> Failure {
    Failure::Refused(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_record::Recording;

    #[test]
    fn a_program_has_the_largest_input_that_is_small_enough() {
        let of = |sizes: &[Size]| size_of(sizes.iter().copied(), Size::Quick);
        assert_eq!(of(&[Size::Tiny, Size::Quick, Size::Full]), Some(Size::Quick));
        assert_eq!(of(&[Size::Tiny, Size::Full]), Some(Size::Tiny));
        assert_eq!(of(&[Size::Full]), None);
    }

    #[test]
    fn a_recording_that_is_broken_off_empty_or_too_large_is_not_kept() {
        let good = RecordingOutcome {
            recordings: vec![Recording { events: 9, bytes: 1000, ..recording() }],
            status: Some(0),
            ..RecordingOutcome::default()
        };
        assert_eq!(useless(&good, 1000), None);
        assert!(useless(&good, 999).is_some_and(|why| why.contains("--most")));
        let ended = RecordingOutcome { status: Some(139), ..good.clone() };
        assert!(useless(&ended, 1000).is_some_and(|why| why.contains("139")));
        let empty = RecordingOutcome { recordings: vec![recording()], ..good.clone() };
        assert!(useless(&empty, 1000).is_some_and(|why| why.contains("no call")));
        let half = Recording { trouble: Some("the disk is full".into()), ..recording() };
        let half = RecordingOutcome { recordings: vec![half], ..good };
        assert!(useless(&half, 1000).is_some_and(|why| why.contains("the disk is full")));
    }

    fn recording() -> Recording {
        Recording {
            path: "t".into(),
            pid: 1,
            exe: "/bin/t".into(),
            how: String::new(),
            events: 0,
            snapshots: 0,
            bytes: 0,
            lost: 0,
            unseen_frees: 0,
            trouble: None,
        }
    }
}
