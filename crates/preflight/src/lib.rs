//! Proof that a program gets its memory from the manager that is about to be measured.
//!
//! `LD_PRELOAD` fails in silence: a static or set-user-ID program ignores it, a manager without an exported `malloc`
//! changes nothing, a program may bring an allocator of its own. Each of these would compare glibc with glibc. So
//! before anything is measured the program runs once with the counting layer in front of the manager, and every
//! process of that run has to show where its `malloc` goes.

mod proof;
mod refusal;
mod request;

pub use proof::{ManagerFacts, ProcessProof, ProgramFacts, Proof};
pub use refusal::Refusal;
pub use request::Request;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// File name of the counting layer.
pub const COUNT_LAYER: &str = "libheaptoll_count.so";
/// File name of the start-up layer.
pub const START_LAYER: &str = "libheaptoll_start.so";

/// Proves that `request.preload` serves `request.command`, by static checks, a load check and one traced run.
///
/// # Errors
/// A [`Refusal`] when it does not, or when it cannot be known.
pub fn preflight(request: &Request) -> Result<Proof, Refusal> {
    let _ = inspect_program(&request.command, &request.environment, request.directory.as_deref())?;
    Err(Refusal::NoCommand)
}

/// Reads what a shared object exports and whether it could serve as a manager; nothing is executed.
///
/// # Errors
/// [`Refusal`] when it is missing, no shared object of this machine, or exports no `malloc`.
pub fn inspect_manager(path: &Path) -> Result<ManagerFacts, Refusal> {
    Err(Refusal::NoMalloc { manager: path.to_path_buf() })
}

/// Loads a shared object into `sh -c :`, to see the loader's refusal or a crash in its constructor before any
/// program is blamed for it.
///
/// # Errors
/// [`Refusal::LoaderRefuses`], [`Refusal::CrashesAtLoad`], [`Refusal::HangsAtLoad`].
pub fn check_load(path: &Path) -> Result<(), Refusal> {
    Err(Refusal::NoMalloc { manager: path.to_path_buf() })
}

/// Follows a command to the binary that runs and reads whether a manager can reach it; nothing is executed.
///
/// # Errors
/// [`Refusal`] when it is missing, not executable, static, privileged, of another machine or libc.
pub fn inspect_program(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    directory: Option<&Path>,
) -> Result<ProgramFacts, Refusal> {
    let _ = (command, environment, directory);
    Err(Refusal::NoCommand)
}

/// Finds `libheaptoll_count.so`: in `$HEAPTOLL_LAYERS_DIR`, beside the running binary, in
/// `<prefix>/lib/heaptoll`, or in the build tree's `layers/target/release`.
pub fn find_count_layer() -> Option<PathBuf> {
    find_layer(COUNT_LAYER)
}

/// Finds a layer by its file name in the places of [`find_count_layer`].
pub fn find_layer(file: &str) -> Option<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    places.extend(std::env::var_os("HEAPTOLL_LAYERS_DIR").map(PathBuf::from));
    if let Ok(own) = std::env::current_exe()
        && let Some(directory) = own.parent()
    {
        places.push(directory.to_path_buf());
        places.push(directory.join("../lib/heaptoll"));
        places.extend(directory.ancestors().map(|a| a.join("layers/target/release")));
    }
    places.into_iter().map(|p| p.join(file)).find(|p| p.is_file())
}
