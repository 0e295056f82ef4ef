//! Following a command to the binary that runs in the end, and whether the loader would preload anything into it.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::proof::ProgramFacts;
use crate::refusal::Refusal;
use heaptoll_elf::{self as elf, ElfError};

/// As many `#!` lines as the kernel follows.
const INTERPRETERS: usize = 4;

/// Follows a command to the binary that runs and reads whether a manager can reach it; nothing is executed.
///
/// # Errors
/// [`Refusal`] when it is missing, not executable, static, privileged, of another machine or libc.
pub fn inspect_program(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    directory: Option<&Path>,
) -> Result<ProgramFacts, Refusal> {
    let path = locate(command, environment, directory)?;
    let search = search_path(environment);
    let mut interpreters = Vec::new();
    let mut binary = path.clone();
    while let Some(line) = script_line(&binary)? {
        if interpreters.len() == INTERPRETERS {
            let reason = "its interpreters are scripts in turn, more than the kernel follows".to_owned();
            return Err(Refusal::ProgramNotUnderstood { program: path, reason });
        }
        let missing = |_| Refusal::InterpreterMissing {
            script: binary.clone(),
            interpreter: line.join(OsStr::new(" ")).to_string_lossy().into_owned(),
        };
        let mut next = find(&line[0], search, directory).map_err(missing)?;
        if next.file_name() == Some(OsStr::new("env"))
            && let Some(real) =
                line[1..].iter().find(|w| !w.as_bytes().starts_with(b"-") && !w.as_bytes().contains(&b'='))
        {
            interpreters.push(next);
            next = find(real, search, directory).map_err(missing)?;
        }
        interpreters.push(next.clone());
        binary = next;
    }
    let elf = match elf::read(&binary) {
        Ok(elf) => elf,
        Err(ElfError::Io(error)) => {
            return Err(Refusal::ProgramNotExecutable { program: binary, reason: error.to_string() });
        }
        Err(ElfError::NotElf(reason) | ElfError::Damaged(reason)) => {
            return Err(Refusal::ProgramNotUnderstood { program: binary, reason });
        }
        Err(ElfError::Foreign(found)) => {
            let wanted = elf::own_machine().to_owned();
            return Err(Refusal::WrongArchitecture { file: binary, found, wanted });
        }
    };
    if !elf.loadable {
        let reason = "it is an ELF file, but no program".to_owned();
        return Err(Refusal::ProgramNotUnderstood { program: binary, reason });
    }
    // The loader itself may be the command (`ld.so ./program`): it has no loader and preloads all the same.
    let is_loader = elf.soname.as_deref().is_some_and(|s| s.starts_with("ld-linux"));
    let Some(loader) = elf.loader.map(PathBuf::from).or_else(|| is_loader.then(|| binary.clone())) else {
        return Err(match elf.is_go {
            true => Refusal::GoProgram { program: binary },
            false => Refusal::StaticProgram { program: binary },
        });
    };
    if loader.file_name().is_some_and(|n| n.as_bytes().starts_with(b"ld-musl")) {
        return Err(Refusal::ForeignLibc { program: binary, loader });
    }
    // Set-id bits of a script are ignored; those of the binary count.
    if let Some(how) = privileges(&binary) {
        return Err(Refusal::PrivilegedProgram { program: binary, how });
    }
    Ok(ProgramFacts {
        own_exports: elf::family::FAMILY
            .iter()
            .filter(|m| elf.exports.iter().any(|e| e == *m))
            .map(|&m| m.to_owned())
            .collect(),
        hidden_allocator: elf.hidden,
        own_heap_calls: elf.own_heap_calls,
        needed: elf.needed,
        path,
        interpreters,
        binary,
        loader,
    })
}

/// Finds the file that a command names, as `execvp` does; nothing of it is read.
///
/// # Errors
/// [`Refusal`] when it is missing or not executable.
pub fn locate(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    directory: Option<&Path>,
) -> Result<PathBuf, Refusal> {
    let name = command.first().filter(|name| !name.is_empty()).ok_or(Refusal::NoCommand)?;
    find(name, search_path(environment), directory)
}

fn search_path(environment: &[(OsString, OsString)]) -> Option<&OsStr> {
    environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())
}

/// Finds a program as `execvp` does: by path when it has a slash, else in each directory of `search`.
fn find(name: &OsStr, search: Option<&OsStr>, directory: Option<&Path>) -> Result<PathBuf, Refusal> {
    let base = directory.map(Path::to_path_buf).or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    if name.as_bytes().contains(&b'/') {
        let path = base.join(name);
        return executable(&path).map(|()| path.clone()).map_err(|error| refusal(name, &path, &error, None));
    }
    let search = search.unwrap_or_else(|| OsStr::new("/bin:/usr/bin"));
    let mut denied = None;
    for place in std::env::split_paths(search) {
        let path = base.join(place).join(name);
        match executable(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // What a folder holds that may not be searched is unknown.
            Err(error) if path.symlink_metadata().is_ok() => denied = denied.or(Some((path, error))),
            Err(_) => {}
        }
    }
    match denied {
        Some((path, error)) => Err(refusal(name, &path, &error, None)),
        None => Err(Refusal::ProgramMissing {
            program: name.to_string_lossy().into_owned(),
            path: Some(search.to_string_lossy().into_owned()),
        }),
    }
}

fn refusal(name: &OsStr, path: &Path, error: &std::io::Error, search: Option<String>) -> Refusal {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Refusal::ProgramMissing { program: name.to_string_lossy().into_owned(), path: search };
    }
    Refusal::ProgramNotExecutable { program: path.to_path_buf(), reason: error.to_string() }
}

fn executable(path: &Path) -> std::io::Result<()> {
    let status = fs::metadata(path)?;
    if !status.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `name` is a C string that lives through the call.
    if unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// The words of a `#!` line; `None` when the file does not begin with one.
fn script_line(path: &Path) -> Result<Option<Vec<OsString>>, Refusal> {
    let mut head = Vec::new();
    let unreadable = |error: std::io::Error| Refusal::ProgramNotExecutable {
        program: path.to_path_buf(),
        reason: error.to_string(),
    };
    fs::File::open(path).map_err(unreadable)?.take(256).read_to_end(&mut head).map_err(unreadable)?;
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
    let words: Vec<_> = line
        .split(|b| b.is_ascii_whitespace())
        .filter(|w| !w.is_empty())
        .map(|w| OsString::from_vec(w.to_vec()))
        .collect();
    if words.is_empty() {
        let reason = "its `#!` line names no interpreter".to_owned();
        return Err(Refusal::ProgramNotUnderstood { program: path.to_path_buf(), reason });
    }
    Ok(Some(words))
}

/// Why the kernel would start this file in secure-execution mode, if it would: the loader then ignores `LD_PRELOAD`.
/// Set-id bits that change nothing (root starting a program set-user-ID to root) are harmless.
pub fn privileges(path: &Path) -> Option<String> {
    let status = fs::metadata(path).ok()?;
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    if rustix::thread::no_new_privs().unwrap_or(false) {
        return None;
    }
    let mode = status.mode();
    if mode & libc::S_ISUID != 0 && status.uid() != user {
        return Some(format!("set-user-ID to user {}", status.uid()));
    }
    // Without the group's execute bit it means mandatory locking, not privilege.
    if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && status.gid() != group {
        return Some(format!("set-group-ID to group {}", status.gid()));
    }
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: both are C strings that live through the call; with size 0 no value is written.
    let capabilities =
        unsafe { libc::getxattr(name.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    // For root they add nothing.
    (capabilities > 0 && user != 0).then(|| "given file capabilities".to_owned())
}
