//! The figures of the ledger.

use heaptoll_callsites::WholeFrame;
use heaptoll_ledger::{LivePeak, Pins, Point, Snapshot, StaticVariable};
use heaptoll_replay::job::Touch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call site that the snapshots name by its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedSite {
    /// Its number in the snapshots.
    pub site: u32,
    /// As tables show it: the first frames of the program's own code.
    pub name: String,
    /// All frames, innermost first.
    pub stack: Vec<WholeFrame>,
}

/// What the JSON holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LedgerFigures {
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
        /// Number of the snapshot at the peak: of those with the largest resident set, to a twentieth, the one with the most
        /// live bytes.
        peak: Option<usize>,
        /// Number of the snapshot with the most live bytes.
        most_live: Option<usize>,
        /// Most requested bytes live in the whole run, whether a snapshot was taken then or not.
        max_live_bytes: Option<u64>,
        /// Largest resident set of the whole run that anything has read, whether a snapshot was taken then or not.
        #[serde(default)]
        max_rss_bytes: u64,
        /// Whether the snapshots show both to a twentieth.
        #[serde(default)]
        peak_is_known: bool,
        /// Where in the run most was live.
        #[serde(default)]
        live_peak: Option<LivePeak>,
        /// The same of the first of two runs, of `--exact`.
        #[serde(default)]
        first_run: Option<LivePeak>,
        /// The variables of static data with most bytes in memory at the peak.
        #[serde(default)]
        static_variables: Vec<StaticVariable>,
        /// In order of time.
        #[serde(rename = "moments")]
        snapshots: Vec<Snapshot>,
        /// The call sites that the snapshots name, by number.
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

/// The trace under other managers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replays {
    /// The point that is compared, in events of the trace.
    pub events: u64,
    /// Number of the recorded run's snapshot there; null where the trace has none.
    pub recorded: Option<usize>,
    /// What was done with blocks.
    pub touch: Touch,
    /// By manager; that of the recorded run first.
    pub managers: Vec<ReplayedManager>,
}

/// The trace under one manager.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedManager {
    /// Its name.
    pub name: String,
    /// Why there are no figures, if there are none.
    pub failed: Option<String>,
    /// In order of the trace.
    pub points: Vec<ReplayedPoint>,
    /// Who holds the free bytes at the point that is compared.
    pub pins: Option<Pins>,
}

/// The process at one point of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedPoint {
    /// Events of the trace until then.
    pub events: u64,
    /// Bytes allocated until then.
    pub clock_bytes: u64,
    /// Resident bytes, less those before the first call and those of the driver.
    pub resident_bytes: u64,
    /// Requested bytes of live blocks.
    pub live_bytes: u64,
    /// Free bytes on resident pages with live blocks.
    pub external_bytes: u64,
    /// Resident bytes of the heap on pages without a live block.
    pub empty_bytes: u64,
}

impl ReplayedManager {
    /// The process after these events.
    pub fn at(&self, events: u64) -> Option<&ReplayedPoint> {
        self.points.iter().find(|point| point.events == events)
    }
}
