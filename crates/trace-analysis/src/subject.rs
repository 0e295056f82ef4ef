//! The process image that a trace is of, and what makes its figures incomplete.

use heaptoll_trace::{Header, Imported, Tables};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variable by which CPython's own allocator is left out; the name of a pair of a header's `machine`.
pub const PYTHONMALLOC: &str = "PYTHONMALLOC";

/// The recorded process, in every result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Path of the executable.
    pub exe: String,
    /// Process number.
    pub pid: i32,
    /// Manager it was recorded over.
    pub manager: String,
    /// Its version; empty when unknown.
    pub manager_version: String,
    /// Whether that manager is a collector.
    pub collector: bool,
    /// Unix seconds at the beginning.
    pub started_unix_s: u64,
    /// How it ended, as text; none when the trace was cut off.
    pub ended: Option<String>,
    /// Wall time from the beginning to the end of the trace, s.
    pub wall_s: f64,
    /// User and system CPU of the process with the recording layer in it, s; none where unknown.
    pub cpu_s: Option<f64>,
    /// Peak resident set, KiB; none where unknown.
    pub peak_rss_kib: Option<u64>,
    /// Whether every event has a time of its own. Otherwise times are those of batches, about a millisecond apart.
    pub event_time: bool,
    /// Holes: events that are not in the trace.
    pub gaps: Vec<Hole>,
    /// The reader's warnings: damage, a missing end.
    pub warnings: Vec<String>,
    /// Whether the environment had the program take all objects from malloc that it takes from an allocator of its own
    /// otherwise (PYTHONMALLOC=malloc).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_all_from_malloc: bool,
    /// The tool whose recording it was made of, and what that has not; none for heaptoll's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// Events that could not be kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hole {
    /// Why.
    pub why: String,
    /// How many, where known.
    pub events: Option<u64>,
}

impl Subject {
    /// From what a reader has when it has reached the end. `last_ns` is the time of the last event, for a trace that
    /// was cut off.
    pub fn new(tables: &Tables, last_ns: u64) -> Subject {
        let Tables { header, ending, gaps, warnings, .. } = tables;
        let ending = ending.as_ref();
        let end_ns = ending.map_or(0, |ending| ending.time_ns).max(last_ns);
        Subject {
            command: header.command.clone(),
            exe: header.exe.clone(),
            pid: header.pid,
            manager: header.manager.clone(),
            manager_version: header.manager_version.clone(),
            collector: header.collector,
            started_unix_s: header.started_unix_s,
            ended: ending.map(|ending| ending.how.clone()),
            wall_s: end_ns as f64 / 1e9,
            cpu_s: ending.and_then(|ending| ending.cpu_s),
            peak_rss_kib: ending.and_then(|ending| ending.peak_rss_kib),
            event_time: header.event_time,
            gaps: gaps.iter().map(|gap| Hole { why: gap.why.clone(), events: gap.events }).collect(),
            warnings: warnings.clone(),
            takes_all_from_malloc: takes_all_from_malloc(header),
            imported: header.imported.clone(),
        }
    }

    /// Whether nothing of the trace is damaged or missing.
    pub fn is_whole(&self) -> bool {
        self.ended.is_some() && self.gaps.is_empty() && self.warnings.is_empty()
    }

    /// Name of the program without its folder; the executable's when there is no command.
    pub fn program(&self) -> &str {
        let path = self.command.first().map_or(self.exe.as_str(), String::as_str);
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// Whether the header states that the environment had the program take all objects from malloc.
pub fn takes_all_from_malloc(header: &Header) -> bool {
    header.machine.iter().any(|(name, value)| name == PYTHONMALLOC && value.starts_with("malloc"))
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::Ending;

    use super::*;

    #[test]
    fn a_trace_that_was_cut_off_lasts_until_its_last_event() {
        let mut tables = Tables::default();
        tables.header.command = vec!["/bin/prog".into(), "-x".into()];
        let cut = Subject::new(&tables, 2_500_000_000);
        assert_eq!((cut.wall_s, cut.ended.as_deref(), cut.program()), (2.5, None, "prog"));
        tables.ending = Some(Ending { time_ns: 3_000_000_000, how: "exited".into(), ..Ending::default() });
        let whole = Subject::new(&tables, 2_500_000_000);
        assert_eq!((whole.wall_s, whole.ended.as_deref()), (3.0, Some("exited")));
    }
}
