//! The laboratory is a binary of its own next to the product's. A command line that needs it is handed over to it when that
//! is found, before anything is stored or run, as git hands over to its commands.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use heaptoll_command::failure::Failure;
use heaptoll_experiment::laboratory::{BINARY, path};
use thiserror::Error;

use crate::version::version;

/// The variable that has the product's version where it hands over.
const PRODUCT: &str = "HEAPTOLL_PRODUCT";

/// The laboratory's commands by the names that they had before, and what each is now.
pub const FORMER: [(&str, &str); 14] = [
    ("study", "lab study"),
    ("delay", "lab delay"),
    ("frequency", "lab frequency"),
    ("proximity", "lab proximity"),
    ("reclamation", "lab reclamation"),
    ("oracle", "lab oracle"),
    ("minheap", "lab minheap"),
    ("conservatism", "lab conservatism"),
    ("replay --graph", "lab replay-graph"),
    ("tailor", "lab tailor"),
    ("artifact", "lab artifact"),
    ("plan", "lab shards plan"),
    ("work", "lab shards work"),
    ("merge", "lab shards merge"),
];

/// Why a laboratory that is there does not take a command line.
#[derive(Debug, Error)]
enum LaboratoryError {
    #[error(
        "heaptoll is {product}, but its laboratory, heaptoll-lab, is {}; install both of one version",
        version()
    )]
    Another { product: String },
    #[error("cannot start the laboratory, {}: {source}; install it again", path.display())]
    CannotStart { path: PathBuf, source: io::Error },
}

/// Whether this schema is of what a command of the laboratory writes.
pub fn has_written(schema: &str) -> bool {
    let name = schema.strip_prefix("heaptoll-").and_then(|rest| rest.split('/').next());
    name.is_some() && FORMER.iter().any(|(_, command)| command.rsplit(' ').next() == name)
}

/// Executes the laboratory with these words where a command failed for the lack of it and it is there. Returns what there
/// is to tell otherwise.
pub fn instead(failure: Failure, words: &[OsString]) -> Failure {
    let path = path().filter(|_| matches!(failure, Failure::Laboratory(_)));
    let Some(path) = path else { return failure };
    let (name, arguments) =
        words.split_first().map_or((OsStr::new(BINARY), words), |(name, rest)| (&**name, rest));
    let source = Command::new(&path).arg0(name).args(arguments).env(PRODUCT, version()).exec();
    Failure::Refused(Box::new(LaboratoryError::CannotStart { path, source }))
}

/// Refuses a product of another version that handed over to this laboratory. It is the first call of its `main`.
///
/// # Errors
/// As stated.
pub fn of_this_version() -> Result<(), Failure> {
    let Some(product) = std::env::var_os(PRODUCT) else { return Ok(()) };
    // SAFETY: no other thread has been started that could read the environment. What is measured is not to have it.
    unsafe { std::env::remove_var(PRODUCT) };
    let product = product.to_string_lossy().into_owned();
    match product == version() {
        true => Ok(()),
        false => Err(Failure::Refused(Box::new(LaboratoryError::Another { product }))),
    }
}
