//! Programs with an allocator of their own: static ones, such that export malloc, and those that are linked with
//! mimalloc, jemalloc or another under its own names. No manager can be put into them. They run as they are, with
//! nothing preloaded, and the tracer follows the allocator by its symbols.

use std::path::{Path, PathBuf};

use heaptoll_elf::ElfError;
use heaptoll_experiment::experiment::{OwnCommand, ProgramInfo};
use heaptoll_preflight::{Refusal, inspect_program};
use heaptoll_reftrace_host::allocator_symbols::{Found, in_file, of_c};
use thiserror::Error;

use super::own::OwnAllocator;
use super::scout::{Calls, Scout};
use heaptoll_command::failure::Failure;

/// The name of C's own family, as rows have it.
const MALLOC: &str = "malloc";

/// An allocator of its own that cannot be followed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum OwnError {
    /// Neither a family of the table nor malloc is in the symbol table.
    #[error(
        "{why}; and its own allocator cannot be followed: {} lacks the symbols of an allocating and a freeing \
         routine. Was it stripped? Trace a build with symbols, or name its routines with --allocator-symbols",
        .binary.display()
    )]
    Unknown {
        /// Why no manager can be put into it.
        why: String,
        /// Its file.
        binary: PathBuf,
    },
    /// One half of a family is there.
    #[error(
        "{} calls {family}. It has {has} but no routine that {lacks}: the other routines were inlined or left out. \
         Half of the calls would not be counted; trace a build without link-time optimisation of the allocator",
         .binary.display()
    )]
    Half {
        /// Its file.
        binary: PathBuf,
        /// The family.
        family: String,
        /// A symbol that is there.
        has: String,
        /// `frees blocks`, `makes blocks`.
        lacks: &'static str,
    },
    /// The file cannot be read.
    #[error("{why}; and its symbols cannot be read: {cause}")]
    Unreadable {
        /// Why no manager can be put into it.
        why: String,
        /// The system's or the file's error.
        cause: String,
    },
}

/// The allocator of its own that a program is served by, if it is; with `own_command` another build of it. A program in which one is found runs once under the
/// tracer, for its beginning, to see which serves it. `None` also where the program cannot be run: the preflight of
/// managers finds the reason.
///
/// # Errors
/// It has one that cannot be followed, or Ctrl-C.
pub fn find(
    program: &ProgramInfo,
    own_command: Option<&OwnCommand>,
    scout: &Scout,
) -> Result<Option<OwnAllocator>, Failure> {
    let Some((binary, must)) = inspect(program, own_command) else { return Ok(None) };
    let refuse = |error: OwnError| Failure::Refused(Box::new(error));
    let read = in_file(scout.table, &binary).and_then(|found| Ok((found, of_c(&binary)?)));
    let (found, of_c) = match (read, &must) {
        (Ok(read), _) => read,
        (Err(error), Some(why)) => return Err(refuse(unreadable(why, &error))),
        (Err(_), None) => return Ok(None),
    };
    let mut candidates: Vec<Found> = found.into_iter().filter(|one| may_serve(one, &of_c)).collect();
    let calls = match candidates.is_empty() {
        true => Calls::default(),
        false => scout.calls(program, own_command)?,
    };
    if must.is_some() && of_c.is_whole() {
        candidates.push(of_c);
    }
    let direct = |one: &Found| if one.name == MALLOC { calls.of_c() } else { calls.of(&one.name) };
    // Where calls do not decide, malloc, which is last.
    let Some(chosen) = candidates.iter().max_by_key(|one| direct(one)) else {
        return must.map_or(Ok(None), |why| Err(refuse(OwnError::Unknown { why, binary })));
    };
    if must.is_none() && direct(chosen) <= calls.of_c() {
        return Ok(None);
    }
    if let Some(error) = half(chosen, &binary) {
        return Err(refuse(error));
    }
    let name = chosen.name.clone();
    let why = must.unwrap_or_else(|| format!("{} contains {name}, which replaces malloc", binary.display()));
    Ok(Some(OwnAllocator { name, binary, why }))
}

/// The program's binary, and why no manager can be put into it if that shows in the file.
fn inspect(program: &ProgramInfo, own_command: Option<&OwnCommand>) -> Option<(PathBuf, Option<String>)> {
    let command = own_command.map_or_else(|| program.command_as_stored(), OwnCommand::words);
    let folder = own_command.and_then(|own| own.directory.as_deref()).map(Path::new);
    let mut environment: Vec<_> = std::env::vars_os().collect();
    environment.extend(program.environment.iter().map(|(name, value)| (name.into(), value.into())));
    match inspect_program(&command, &environment, folder) {
        Err(Refusal::StaticProgram { program: binary }) => {
            let why = format!("{} is statically linked", binary.display());
            Some((binary, Some(why)))
        }
        Err(_) => None,
        Ok(facts) => {
            let exports = facts.own_exports.iter().any(|name| name == MALLOC);
            let why = exports.then(|| format!("{} has its own malloc", facts.binary.display()));
            Some((facts.binary, why))
        }
    }
}

/// Whether a family may be what serves a program; what forwards to malloc does not.
fn may_serve(found: &Found, of_c: &Found) -> bool {
    !(found.allocates.is_empty() && found.frees.is_empty())
        && !(found.forwards && (found.sends_to_malloc || of_c.is_whole()))
}

/// What is missing of a family that serves a program.
fn half(found: &Found, binary: &Path) -> Option<OwnError> {
    let (has, lacks) = match (found.allocates.first(), found.frees.first()) {
        (Some(has), None) => (has, "frees blocks"),
        (None, Some(has)) => (has, "makes blocks"),
        _ => return None,
    };
    Some(OwnError::Half { binary: binary.into(), family: found.name.clone(), has: has.clone(), lacks })
}

fn unreadable(why: &str, error: &ElfError) -> OwnError {
    OwnError::Unreadable { why: why.into(), cause: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, allocates: &[&str], frees: &[&str]) -> Found {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Found { name: name.into(), allocates: all(allocates), frees: all(frees), ..Found::default() }
    }

    #[test]
    fn half_a_family_is_refused_by_what_is_missing() {
        let binary = Path::new("/bin/program");
        assert_eq!(half(&found("mimalloc", &["mi_malloc"], &["mi_free"]), binary), None);
        let half = half(&found("mimalloc", &["mi_malloc"], &[]), binary).map(|error| error.to_string());
        assert!(
            half.as_ref().is_some_and(|text| text.contains("mi_malloc but no routine that frees")),
            "{half:?}"
        );
    }

    #[test]
    fn what_forwards_to_malloc_does_not_serve() {
        let malloc = found(MALLOC, &["malloc"], &["free"]);
        let shims = Found { forwards: true, ..found("rust", &["__rust_alloc"], &["__rust_dealloc"]) };
        assert!(may_serve(&shims, &found(MALLOC, &[], &[])));
        assert!(!may_serve(&shims, &malloc), "a static program with malloc");
        assert!(!may_serve(&Found { sends_to_malloc: true, ..shims }, &found(MALLOC, &[], &[])));
        assert!(may_serve(&found("mimalloc", &["mi_malloc"], &[]), &malloc));
    }
}
