//! What a recording is of: the JSON of its file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::live::Live;
use crate::unreachable::Unreachable;

/// An object file that allocations are called from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectFile {
    /// Its path.
    pub path: String,
    /// SHA-256 of its content, hexadecimal; empty where it could not be read.
    pub sha256: String,
}

impl ObjectFile {
    /// The file as it is now.
    pub fn now(path: &str) -> ObjectFile {
        let sha256 =
            std::fs::read(path).map(|content| format!("{:x}", Sha256::digest(content))).unwrap_or_default();
        ObjectFile { path: path.to_owned(), sha256 }
    }
}

/// What a recording is of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// Version of heaptoll.
    pub heaptoll: String,
    /// The program's name.
    pub program: String,
    /// Its command.
    pub command: Vec<String>,
    /// The file that is executed: of a script its interpreter.
    pub executable: String,
    /// Exit status of the recorded run.
    pub status: i32,
    /// SHA-256 of its output, hexadecimal.
    pub output_sha256: String,
    /// Object files that allocations are called from.
    pub objects: Vec<ObjectFile>,
    /// Bytes allocated.
    pub allocated_bytes: u64,
    /// Allocations that are a `realloc` of an object.
    pub resized: u64,
    /// Objects that the program never frees.
    pub never_freed: u64,
    /// Most objects at once between allocation and free.
    pub most_objects: u64,
    /// Requested bytes alive at last use, at the program's free, and if nothing is freed.
    pub live: [Live; 3],
    /// When objects can be reached no more; null where that was not recorded.
    #[serde(default)]
    pub unreachable: Option<Unreachable>,
}
