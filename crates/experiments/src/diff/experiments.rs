//! Two experiments compared, for scripts: what `heaptoll diff A.db B.db` writes.

use std::io::Read;
use std::path::Path;

use heaptoll_experiment::compare::Across;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

schemars::labelled!(Figures, "heaptoll-diff-experiments/1");

const MAGIC: &[u8] = b"SQLite format 3\0";

/// What two experiments have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// What the first is called.
    pub a: String,
    /// What the second is called.
    pub b: String,
    /// Programs that were left out, and what else was not the same.
    pub warnings: Vec<String>,
    /// The same program under the same manager, B over A.
    pub rows: Vec<Across>,
}

/// Whether a file begins as an experiment does.
pub fn is_experiment(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    // A pipe's first bytes would be lost.
    path.is_file()
        && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == MAGIC
}
