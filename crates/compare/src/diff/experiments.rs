//! Two experiments compared, for scripts: what `heaptoll diff A.db B.db` reads and writes.

use std::io::Read;
use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_command::labelled;
use heaptoll_experiment::compare::Across;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::store::Store;
use heaptoll_report::json::{self, ExperimentFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JsonFile;
use super::counts::is_json;

schemars::labelled!(DiffExperimentsFigures, "heaptoll-diff-experiments/1");

const MAGIC: &[u8] = b"SQLite format 3\0";

/// What two experiments have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffExperimentsFigures {
    /// What the first is called.
    pub a: String,
    /// What the second is called.
    pub b: String,
    /// Programs that were left out, and what else was not the same.
    pub warnings: Vec<String>,
    /// The same program under the same manager, B over A.
    pub rows: Vec<Across>,
}

/// Whether a file is an experiment, as a database or as JSON.
pub fn is_experiment(path: &Path) -> bool {
    let is_of_runs = |text: String| labelled::schema(&text).is_some_and(|schema| schema == json::SCHEMA);
    is_database(path) || is_json(path) && std::fs::read_to_string(path).is_ok_and(is_of_runs)
}

/// Reads either.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn read(path: &Path) -> Result<Experiment, Failure> {
    if is_json(path) {
        return Ok(JsonFile::read(path)?.parse(labelled::read::<ExperimentFile>)?.experiment);
    }
    Ok(Store::read(path)?)
}

/// Whether a file begins as a database does.
fn is_database(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    // A pipe's first bytes would be lost.
    path.is_file()
        && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == MAGIC
}
