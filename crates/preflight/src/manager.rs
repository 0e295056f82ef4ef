//! What a shared object offers as a manager, from its file and from loading it into the simplest program.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::plan::Plan;
use crate::proof::ManagerFacts;
use crate::refusal::Refusal;
use crate::tree::{self, Ending, Run};
use heaptoll_elf::{self as elf, ElfError};

/// Functions without which a manager is refused: glibc's would be called with blocks of the manager's heap.
const REQUIRED: [&str; 3] = ["free", "realloc", "calloc"];
/// Makes the counting layer call every function of the family.
const CALL_FAMILY: &str = "HEAPTOLL_PREFLIGHT_FAMILY";
/// The exit status of a process in which a function of the family returned what it must not: the counting layer's.
const WRONG: i32 = 91;
/// The most that loading an object into `sh -c :` may take.
const LOAD_LIMIT: Duration = Duration::from_secs(5);

/// Reads what a shared object exports and whether it could serve as a manager; nothing is executed.
///
/// # Errors
/// [`Refusal`] when it is missing, no shared object of this machine, or exports no `malloc`.
pub fn inspect_manager(path: &Path) -> Result<ManagerFacts, Refusal> {
    whole_family(inspect_object(path)?)
}

/// The facts of an object that exports `malloc` and what a manager must export besides.
pub(crate) fn whole_family(facts: ManagerFacts) -> Result<ManagerFacts, Refusal> {
    if !facts.exports.iter().any(|e| e == "malloc") {
        return Err(Refusal::NoMalloc { manager: facts.path });
    }
    if let Some(missing) = REQUIRED.iter().find(|&&m| facts.missing.iter().any(|x| x == m)) {
        return Err(Refusal::HalfAFamily { manager: facts.path, missing: (*missing).to_owned() });
    }
    Ok(facts)
}

/// As [`inspect_manager`], for any object of a stack: it need not export `malloc`.
pub fn inspect_object(path: &Path) -> Result<ManagerFacts, Refusal> {
    let unreadable = |reason: String| Refusal::ManagerUnreadable { manager: path.to_path_buf(), reason };
    let real = fs::canonicalize(path).map_err(|e| unreadable(e.to_string()))?;
    if !fs::metadata(&real).map_err(|e| unreadable(e.to_string()))?.is_file() {
        return Err(unreadable("it is not a regular file".to_owned()));
    }
    let wrong = |reason: String| Refusal::NotASharedObject { manager: path.to_path_buf(), reason };
    let elf = match elf::read(&real) {
        Ok(elf) => elf,
        Err(ElfError::Io(error)) => return Err(unreadable(error.to_string())),
        Err(ElfError::NotElf(reason) | ElfError::Damaged(reason)) => return Err(wrong(reason)),
        Err(ElfError::Foreign(found)) => {
            let wanted = elf::own_machine().to_owned();
            return Err(Refusal::WrongArchitecture { file: path.to_path_buf(), found, wanted });
        }
    };
    if !elf.dynamic_type {
        return Err(wrong("it is a program or an object file".to_owned()));
    }
    if elf.pie {
        return Err(wrong("it is a position-independent program".to_owned()));
    }
    // The loader's preload list has no way to write these two characters.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if absolute.as_os_str().as_bytes().iter().any(|&b| b == b':' || b == b' ') {
        return Err(Refusal::PathNotPreloadable { object: absolute });
    }
    let (exports, missing) =
        elf::family::FAMILY.iter().map(|&m| m.to_owned()).partition(|m| elf.exports.contains(m));
    let operator = |name: &&String| {
        ["_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"].iter().any(|p| name.starts_with(p)) && !name.contains('@')
    };
    let mut operators: Vec<_> = elf.exports.iter().filter(operator).collect();
    operators.sort();
    operators.dedup();
    Ok(ManagerFacts {
        version: version_of(&real),
        soname: elf.soname,
        exports,
        missing,
        operators: u32::try_from(operators.len()).unwrap_or(u32::MAX),
        control: elf.exports.iter().any(|e| e == "heaptoll_control_v1"),
        needed: elf.needed,
        path: real,
    })
}

/// `2.0` of `libmimalloc.so.2.0`.
fn version_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let version = name.split_once(".so.")?.1;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// Loads a shared object into `sh -c :`, to see the loader's refusal or a crash in its constructor before any
/// program is blamed for it.
///
/// # Errors
/// [`Refusal::LoaderRefuses`], [`Refusal::CrashesAtLoad`], [`Refusal::HangsAtLoad`]; [`Refusal::CannotStart`] when
/// there is no `/bin/sh`.
pub fn check_load(path: &Path) -> Result<(), Refusal> {
    let environment = [("PATH".into(), "/usr/bin:/bin".into())];
    check_load_of(&[path.to_path_buf()], &environment, &AtomicBool::new(false))
}

/// As [`check_load`], for a whole stack in an environment that may hold its settings.
pub fn check_load_of(
    preload: &[PathBuf],
    environment: &[(OsString, OsString)],
    cancel: &AtomicBool,
) -> Result<(), Refusal> {
    let Some(manager) = preload.last().cloned() else { return Ok(()) };
    let run = load(preload, environment, cancel)?;
    let stderr = run.stderr.trim().to_owned();
    if let Some(line) = stderr.lines().find(|l| l.contains("from LD_PRELOAD cannot be preloaded")) {
        return Err(loader_refuses(manager, line));
    }
    match run.ending {
        Ending::Exited(0) => Ok(()),
        Ending::Stopped => Err(Refusal::HangsAtLoad { manager, seconds: LOAD_LIMIT.as_secs() }),
        _ if stderr.contains("symbol lookup error")
            || stderr.contains("error while loading shared libraries") =>
        {
            Err(loader_refuses(manager, &stderr))
        }
        ending => Err(Refusal::CrashesAtLoad {
            manager,
            what: ending.to_string(),
            stderr: stderr.lines().take(3).collect::<Vec<_>>().join("; "),
        }),
    }
}

/// Calls each function of a manager's family once, in `sh -c :` under the counting layer, so that one that crashes,
/// does not return or gives no block is found before a program is blamed for it.
///
/// # Errors
/// [`Refusal::FunctionFails`]; [`Refusal::CannotStart`] when there is no `/bin/sh`.
pub fn check_family(
    count_layer: &Path,
    manager: &[PathBuf],
    environment: &[(OsString, OsString)],
    cancel: &AtomicBool,
) -> Result<(), Refusal> {
    let Some(last) = manager.last() else { return Ok(()) };
    let stack: Vec<PathBuf> =
        std::iter::once(count_layer.to_path_buf()).chain(manager.iter().cloned()).collect();
    let mut environment = environment.to_vec();
    environment.push((CALL_FAMILY.into(), "1".into()));
    let run = load(&stack, &environment, cancel)?;
    if matches!(run.ending, Ending::Exited(0)) || cancel.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut lines: Vec<&str> = run.stderr.lines().filter(|line| !line.is_empty()).collect();
    let what = match run.ending {
        Ending::Exited(WRONG) => lines.pop().unwrap_or("a wrong result").to_owned(),
        Ending::Stopped => format!("it does not return within {} s", LOAD_LIMIT.as_secs()),
        ending => ending.to_string(),
    };
    // What the manager itself wrote is no name.
    let function = lines.iter().rfind(|line| elf::family::FAMILY.contains(line)).unwrap_or(&"malloc");
    Err(Refusal::FunctionFails { manager: last.clone(), function: (*function).to_owned(), what })
}

/// Runs `sh -c :` with these objects preloaded.
fn load(
    preload: &[PathBuf],
    environment: &[(OsString, OsString)],
    cancel: &AtomicBool,
) -> Result<Run, Refusal> {
    let mut environment: Vec<_> = environment.iter().filter(|(n, _)| n != "LD_PRELOAD").cloned().collect();
    environment.push(("LD_PRELOAD".into(), preload_list(preload)));
    let plan = Plan {
        watch: None,
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["sh".into(), "-c".into(), ":".into()],
        environment,
        directory: None,
        stdin: None,
        limit: LOAD_LIMIT,
        hurry: None,
        trace: false,
        enough: &|| false,
        begun: &|| true,
        admit: &|_| (),
    };
    tree::run(&plan, cancel)
}

/// The value of `LD_PRELOAD`.
pub fn preload_list(preload: &[PathBuf]) -> OsString {
    preload.iter().map(|p| p.as_os_str()).collect::<Vec<_>>().join(OsStr::new(":"))
}

fn loader_refuses(manager: PathBuf, line: &str) -> Refusal {
    let advice = if line.contains("static TLS") {
        "it needs more static thread-local storage than the loader has left: set \
         GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096"
    } else if line.contains("undefined symbol") || line.contains("symbol lookup error") {
        "it needs a symbol that nothing provides: link it with the library that does"
    } else if line.contains("cannot open shared object file") {
        "a library that it needs is missing: install it or set its run path"
    } else {
        "rebuild it for this system"
    };
    // The loader's line begins with its own name and ends with what it did about it.
    let message = line.trim_start_matches("ERROR: ld.so: ").trim_end_matches(": ignored.").to_owned();
    Refusal::LoaderRefuses { manager, message, advice: advice.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_file_names() {
        assert_eq!(version_of(Path::new("/lib/libmimalloc.so.2.0")).as_deref(), Some("2.0"));
        assert_eq!(version_of(Path::new("/lib/libx.so")), None);
        assert_eq!(version_of(Path::new("/lib/libx.so.old")), None);
    }

    #[test]
    fn preload_lists_are_joined_by_colons() {
        assert_eq!(preload_list(&["/a.so".into(), "/b.so".into()]), "/a.so:/b.so");
    }
}
