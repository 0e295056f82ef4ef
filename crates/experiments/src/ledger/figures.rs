//! The figures of the ledger.

use heaptoll_callsites::WholeFrame;
use heaptoll_ledger::{Point, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::replays::Replays;

/// A call site that the snapshots name by its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedSite {
    /// Its number in `pins`.
    pub site: u32,
    /// As tables show it: the first frames of the program's own code.
    pub name: String,
    /// All frames, innermost first.
    pub stack: Vec<WholeFrame>,
}

/// What the JSON holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Figures {
    /// Of snapshots of the process's pages.
    Pages {
        /// Program and arguments, as a shell takes them.
        program: String,
        /// The manager that it ran over.
        manager: String,
        /// Whether that is a collector.
        collector: bool,
        /// Whether a collection was forced at every snapshot.
        collected: bool,
        /// Number of the snapshot with the largest resident set.
        peak: Option<usize>,
        /// Number of the snapshot with the most live bytes.
        most_live: Option<usize>,
        /// Most requested bytes live in the whole run, whether a snapshot was taken then or not.
        max_live_bytes: Option<u64>,
        /// In order of time.
        #[serde(rename = "moments")]
        snapshots: Vec<Snapshot>,
        /// The call sites in `pins` of the snapshots, by number.
        #[serde(default)]
        call_sites: Vec<NamedSite>,
        /// The trace under other managers, where it was replayed.
        #[serde(default)]
        replays: Option<Replays>,
    },
    /// Of samples of the resident set.
    Coarse {
        /// Program and arguments, as a shell takes them.
        program: String,
        /// The manager that it ran over.
        manager: String,
        /// In order of time.
        points: Vec<Point>,
        /// The trace under other managers, where it was replayed.
        #[serde(default)]
        replays: Option<Replays>,
    },
}
