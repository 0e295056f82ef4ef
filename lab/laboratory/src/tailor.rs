//! `heaptoll lab tailor`: an allocator made for one program from its trace.

use std::path::{Path, PathBuf};

use heaptoll_preflight::{check_load, inspect_manager};
use heaptoll_report::files;
use heaptoll_tailor::compile::Compiler;
use heaptoll_tailor::error::TailorError;
use heaptoll_tailor::plan::Plan;
use heaptoll_tailor::profile::{EACH_OBJECT, Profile};
use heaptoll_tailor::source::{Origin, source};
use heaptoll_trace::{MEMORY_LIMIT, Memory};
use heaptoll_trace_analysis::feed::feed;
use heaptoll_trace_analysis::subject::Subject;

pub use document::document;
pub use figures::{ClassFigures, TailorFigures};
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;
use heaptoll_command::writable;

mod document;
mod figures;
mod sentences;

schemars::labelled!(TailorFigures, "heaptoll-tailor/1");
/// Fewest allocations of a trace that an allocator is made from. A class that serves a ten-thousandth of the requests
/// (the rarest that there are) has then served one.
pub const LEAST_ALLOCATIONS: u64 = 10_000;

/// What is made of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailorRequest {
    /// The shared object; none where the source is enough.
    pub object: Option<PathBuf>,
    /// Its source; next to the object, with the ending `.c`, where none is named.
    pub source: Option<PathBuf>,
    /// Whether files that exist are replaced.
    pub force: bool,
    /// Memory that the objects of the trace may take, bytes.
    pub memory_limit_bytes: u64,
}

impl Default for TailorRequest {
    fn default() -> TailorRequest {
        TailorRequest { object: None, source: None, force: false, memory_limit_bytes: MEMORY_LIMIT }
    }
}

/// Reads a trace (`-` is standard input), writes the source of an allocator for it, and compiles it.
///
/// # Errors
/// The trace cannot be read, is not whole or too small; a file exists or cannot be written; there is no C compiler, or
/// it fails; what it made is not loaded.
pub fn make(trace: &Path, request: &TailorRequest) -> Result<TailorFigures, Failure> {
    // The object takes its place by its name: what a link leads to is replaced, and nothing but a file.
    let object_place = request
        .object
        .as_ref()
        .map(|object| {
            check(object, request.force)?;
            writable::regular(object).map_err(|why| cannot_write(object, &why))
        })
        .transpose()?;
    let source_path = source_path(request)?;
    check(&source_path, request.force)?;
    if writable::are_same(&source_path, trace) {
        return Err(cannot_write(&source_path, "it is the trace; name another file with --source"));
    }
    let compiler = request
        .object
        .is_some()
        .then(|| Compiler::find(std::env::var_os("CC"), std::env::var_os("PATH")))
        .transpose()
        .map_err(refused)?;
    let (profile, subject) = read(trace, request.memory_limit_bytes)?;
    let plan = Plan::new(&profile);
    let mut figures = TailorFigures::new(subject, &profile, &plan);
    let origin = Origin {
        command: figures.subject.program().to_owned(),
        trace: trace.display().to_string(),
        learned: sentences::learned(&figures),
    };
    let text = source(&plan, &origin);
    files::write_atomically(&source_path, |out| {
        out.write_all(text.as_bytes())
            .map_err(|source| heaptoll_report::ReportError::Stream { form: "C source", source })
    })?;
    figures.source = source_path.display().to_string();
    figures.source_lines = text.lines().count() as u64;
    if let (Some(object), Some(place), Some(compiler)) = (&request.object, object_place, compiler) {
        compiler.compile(&source_path, &place).map_err(trouble)?;
        let found = std::path::absolute(object).unwrap_or_else(|_| object.clone());
        inspect_manager(&found)?;
        check_load(&found)?;
        figures.object = Some(object.display().to_string());
        figures.compiler = Some(compiler.name());
    }
    Ok(figures)
}

/// Where the source goes.
fn source_path(request: &TailorRequest) -> Result<PathBuf, Failure> {
    let path = match (&request.source, &request.object) {
        (Some(source), _) => source.clone(),
        (None, Some(object)) => object.with_extension("c"),
        (None, None) => {
            return Err(Failure::Usage(
                "name the shared object to make (-o my.so), or only the source (--source my.c)".into(),
            ));
        }
    };
    if request.object.as_ref() == Some(&path) {
        return Err(Failure::Usage(format!(
            "{} cannot be both the shared object and its source: name two files",
            path.display()
        )));
    }
    Ok(path)
}

/// Refuses a file that could not be written, or that is there.
fn check(path: &Path, force: bool) -> Result<(), Failure> {
    writable::check(path).map_err(|why| cannot_write(path, &why))?;
    if path.exists() && !force {
        return Err(refused(TailorError::Exists { path: path.to_owned() }));
    }
    Ok(())
}

fn cannot_write(path: &Path, why: &str) -> Failure {
    Failure::Usage(format!("cannot write {}: {why}", path.display()))
}

/// What the trace shows.
fn read(trace: &Path, memory_limit_bytes: u64) -> Result<(Profile, Subject), Failure> {
    let memory = Memory { limit_bytes: memory_limit_bytes, each_object_bytes: EACH_OBJECT as u64 };
    let reader = trace_source::open(trace, memory)?;
    let mut profile = Profile::default();
    let tables = feed(reader, |batch| profile.events(&batch.events)).map_err(trace_source::refused)?;
    let subject = Subject::new(&tables, profile.time_ns);
    let name = || trace.display().to_string();
    let gap = subject.gaps.first().map(|gap| format!("events are missing: {}", gap.why));
    let misfits = (profile.misfits() > 0).then(|| "events name objects that do not exist".to_owned());
    if let Some(why) = subject.warnings.first().cloned().or(gap).or(misfits) {
        return Err(refused(TailorError::NotWhole { trace: name(), why }));
    }
    if profile.allocations < LEAST_ALLOCATIONS {
        return Err(refused(TailorError::TooSmall {
            trace: name(),
            allocations: profile.allocations,
            least: LEAST_ALLOCATIONS,
        }));
    }
    Ok((profile, subject))
}

fn refused(error: TailorError) -> Failure {
    Failure::Refused(Box::new(error))
}

fn trouble(error: TailorError) -> Failure {
    Failure::Trouble(Box::new(error))
}
