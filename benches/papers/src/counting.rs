//! Instructions of the malloc family in one run of a program under one manager, counted by callgrind.

use std::path::{Path, PathBuf};

use heaptoll_callgrind::profile::{self, Entries};
use heaptoll_callgrind::symbols;
use heaptoll_catalog::Prepared;

use crate::Error;
use crate::installation::{Installation, RunRequest, SelectedManager};

/// The calls of the program, with everything that was executed from entry to return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// `malloc`, and C++'s `operator new`.
    pub malloc: Entries,
    /// `free`, and C++'s `operator delete`. Calls with NULL are calls too.
    pub free: Entries,
    /// `calloc`.
    pub calloc: Entries,
    /// `realloc` and `reallocarray`.
    pub realloc: Entries,
}

/// The functions of each field of [`Counts`].
const FAMILY: [&[&str]; 4] = [
    &["malloc", "_Znwm", "_Znam"],
    &["free", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm"],
    &["calloc"],
    &["realloc", "reallocarray"],
];

/// Counts one run. `threaded` is the object that gives the program a second thread.
///
/// # Errors
/// The program fails, Valgrind is missing, or no call reached the manager.
pub fn count(
    installation: &Installation,
    program: &Prepared,
    manager: &SelectedManager,
    threaded: Option<&Path>,
) -> Result<Counts, Error> {
    let folder = installation.folder()?;
    let request = RunRequest {
        head: profile::valgrind(&folder.path().join("%p.profile")),
        preload: threaded.into_iter().chain(manager.object.as_deref()).map(Path::to_path_buf).collect(),
        environment: std::iter::once((profile::BOUND_AT_START.0.into(), profile::BOUND_AT_START.1.into()))
            .chain(manager.environment.iter().cloned())
            .collect(),
    };
    installation.run(program, &manager.name, &request)?;
    let text = largest_profile(folder.path())?;
    let failed = |reason: &str| Error::Failed {
        program: program.name.clone(),
        manager: manager.name.clone(),
        reason: reason.into(),
    };
    let (object, shared) = match &manager.object {
        Some(object) => (object.canonicalize().map_err(Error::file("find", object))?, false),
        None => {
            let libc = profile::calls(&text).into_iter().find(|call| call.object.ends_with("/libc.so.6"));
            let libc = libc.ok_or_else(|| failed("its profile names no libc.so.6"))?;
            (PathBuf::from(libc.object), true)
        }
    };
    let names: Vec<Vec<String>> = FAMILY
        .iter()
        .map(|functions| Ok(symbols::aliases(&object, functions)?.concat()))
        .collect::<Result<_, Error>>()?;
    let counted = profile::family(&text, &object.to_string_lossy(), &names, shared);
    let [malloc, free, calloc, realloc] = counted[..] else {
        return Err(failed("its profile cannot be read"));
    };
    if malloc.calls + calloc.calls + realloc.calls == 0 {
        return Err(failed("no call reached the manager"));
    }
    Ok(Counts { malloc, free, calloc, realloc })
}

/// The profile of the process that executed most; a program may be several.
fn largest_profile(folder: &Path) -> Result<String, Error> {
    let mut best = (0, String::new());
    for entry in std::fs::read_dir(folder).map_err(Error::file("read", folder))? {
        let path = entry.map_err(Error::file("read", folder))?.path();
        let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let total = text
            .lines()
            .filter_map(|line| line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: ")))
            .find_map(|total| total.trim().parse::<u64>().ok())
            .unwrap_or(0);
        if total >= best.0 {
            best = (total, text);
        }
    }
    Ok(best.1)
}

/// Instructions per call, when there were calls.
pub fn per_call(entries: Entries) -> Option<f64> {
    (entries.calls > 0).then(|| entries.per_call())
}
