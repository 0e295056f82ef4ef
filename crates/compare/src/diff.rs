//! `heaptoll diff`: which call sites two recordings, or two times of one, differ by.

use std::path::{Path, PathBuf};

use heaptoll_trace::MEMORY_LIMIT;

pub use document::document;
pub use figures::{DiffFigures, Recording};
use heaptoll_command::failure::Failure;
use heaptoll_command::foreign;
use heaptoll_command::labelled;
use heaptoll_command::trace_source;
use heaptoll_facts::Facts;
use heaptoll_gate::sites::differences_until;

use crate::comparative::Comparable;

pub mod counts;
mod document;
pub mod experiments;
pub mod facts;
mod figures;
mod joined;

schemars::labelled!(DiffFigures, "heaptoll-diff/1");

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffRequest {
    /// The trace from which changes are counted.
    pub base: PathBuf,
    /// Where it is taken to end, ns from its beginning.
    pub base_until_ns: u64,
    /// The other trace; the same for two times of one.
    pub new: PathBuf,
    /// See `base_until_ns`.
    pub new_until_ns: u64,
}

/// Compares two traces with call stacks, or one with itself at an earlier time.
///
/// # Errors
/// One is neither a trace nor a profile, has no call stacks, cannot be read, or needs more memory.
pub fn measure(request: &DiffRequest) -> Result<DiffFigures, Failure> {
    let (base, base_ends) = recording(&request.base, request.base_until_ns)?;
    let (new, new_ends) = recording(&request.new, request.new_until_ns)?;
    let sides = [&request.base, &request.new].map(std::slice::from_ref);
    let sites = differences_until((sides[0], request.base_until_ns), (sides[1], request.new_until_ns))?;
    let mut warnings = sites.warnings.clone();
    warnings.dedup();
    warnings.extend([base_ends, new_ends].into_iter().flatten());
    let differs =
        |of: fn(&Recording) -> &str| of(&base) != of(&new) && !of(&base).is_empty() && !of(&new).is_empty();
    if differs(|side| program_name(&side.program)) {
        warnings.push(format!("These are two programs: {} and {}.", base.program, new.program));
    }
    if differs(|side| &side.manager) {
        warnings.push(format!(
            "They ran under two managers, {} and {}, and a program may ask for other blocks under another \
             manager.",
            base.manager, new.manager
        ));
    }
    if base.is_profile != new.is_profile {
        warnings.push(
            "One is a trace, the other a profile of another tool. The trace counts a resize with its whole \
             new size, the profile as its tool counts."
                .into(),
        );
    }
    Ok(DiffFigures { base, new, sites, warnings })
}

/// A recording, and a warning where it ends before the time up to which it is taken.
fn recording(trace: &Path, until_ns: u64) -> Result<(Recording, Option<String>), Failure> {
    if let Some(found) = foreign::profile(trace, MEMORY_LIMIT)? {
        let subject = found.profile.subject;
        let recording = Recording {
            trace: trace.display().to_string(),
            program: match subject.command.is_empty() {
                true => subject.exe,
                false => heaptoll_report::format::shell_command(&subject.command),
            },
            is_profile: true,
            ..Recording::default()
        };
        return Ok((recording, None));
    }
    let tables = heaptoll_trace::tables(trace).map_err(trace_source::refused)?;
    let header = &tables.header;
    let end_ns = tables.ending.as_ref().map(|ending| ending.time_ns);
    let ends = end_ns.filter(|end_ns| until_ns != u64::MAX && until_ns > *end_ns).map(|end_ns| {
        let [end, until] = [end_ns, until_ns].map(|ns| heaptoll_units::time_ns(ns as f64));
        format!("{} ends after {end}: what is shown at {until} is its end.", trace.display())
    });
    let recording = Recording {
        trace: trace.display().to_string(),
        program: match header.command.is_empty() {
            true => header.exe.clone(),
            false => heaptoll_report::format::shell_command(&header.command),
        },
        is_profile: false,
        manager: header.manager.clone(),
        until_s: (until_ns != u64::MAX).then_some(until_ns as f64 / 1e9),
    };
    Ok((recording, ends))
}

/// A file that cannot be compared or shown.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {why}", path.display())]
struct CannotUse {
    path: PathBuf,
    why: String,
}

/// A file of JSON, which is read once.
pub struct JsonFile<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> JsonFile<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &'a Path) -> Result<JsonFile<'a>, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| refused(path, &error))?;
        Ok(JsonFile { path, text })
    }

    /// The schema that it names; empty where it names none.
    pub fn schema(&self) -> String {
        labelled::schema(&self.text).unwrap_or_default()
    }

    /// Its path, for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The facts that this command wrote into it.
    ///
    /// # Errors
    /// It is not what the command writes, or of another version.
    pub fn facts(&self, command: &Comparable) -> Result<Facts, Failure> {
        self.parse(|text| command.facts(text))
    }

    /// What it holds.
    fn parse<T, E: ToString>(&self, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, Failure> {
        parse(&self.text).map_err(|error| refused(self.path, &error))
    }
}

fn refused(path: &Path, why: &impl ToString) -> Failure {
    Failure::Refused(Box::new(CannotUse { path: path.to_owned(), why: why.to_string() }))
}

/// The program's file name without its folder and arguments.
fn program_name(program: &str) -> &str {
    let path = program.split(' ').next().unwrap_or(program);
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_the_same_in_any_folder_with_any_arguments() {
        assert_eq!(program_name("/tmp/a/cfrac 123"), program_name("./cfrac 9 8"));
        assert_ne!(program_name("/bin/cfrac"), program_name("/bin/gawk"));
        assert_eq!(program_name(""), "");
    }
}
