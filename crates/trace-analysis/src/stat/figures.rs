//! The result of `heaptoll trace stat`, as it goes into JSON.

use heaptoll_callsites::{Sum, WholeFrame, kept_by};
use heaptoll_trace::{EventKind, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::latency::LatencyFigures;
pub use super::reallocs::{ChainRow, FactorRow, Reallocs};
pub use super::sites::{CallSiteFigures, SiteFigures};
pub use super::sizes::{ExactSize, SizeRow, Sizes};
pub use super::threads::ThreadFigures;
pub use super::timeline::Point;
use crate::subject::Subject;

schemars::labelled!(StatFigures, "heaptoll-stat/1");

/// Everything that `heaptoll trace stat` reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatFigures {
    /// The process that was analysed.
    pub subject: Subject,
    /// Events read.
    pub events: u64,
    /// Objects made.
    pub objects: u64,
    /// The byte clock at the end: bytes requested by new objects, and what reallocs grew by.
    pub bytes: u64,
    /// `bytes` by `objects`.
    pub average_size_bytes: Option<f64>,
    /// The time of most requested bytes live (the first of them).
    pub peak: Peak,
    /// Most objects alive at one time, not always at the peak.
    pub max_live_objects: u64,
    /// Never freed.
    pub at_exit: LiveTotals,
    /// Live when `exit` began, before handlers and destructors; none where it did not.
    pub when_exit_began: Option<LiveTotals>,
    /// Counts and bytes by kind, those that occurred.
    pub kinds: Vec<KindFigures>,
    /// Per second.
    pub rates: Rates,
    /// Sizes of objects when they are allocated.
    pub sizes: Sizes,
    /// Usable minus requested bytes.
    pub internal: Internal,
    /// Use of realloc.
    pub reallocs: Reallocs,
    /// Objects that live very shortly.
    pub temporary: Temporary,
    /// By thread.
    pub threads: Vec<ThreadFigures>,
    /// Objects freed by another thread than the one that allocated them.
    pub cross_thread_frees: u64,
    /// Frees of objects that the trace knows.
    pub frees: u64,
    /// Durations of calls; empty when the trace has none.
    pub latencies: Vec<LatencyFigures>,
    /// Live bytes over the run.
    pub timeline: Vec<Point>,
    /// Resident set over the run: time in ns, KiB.
    pub resident: Vec<(u64, u64)>,
    /// By call stacks that read alike, most bytes first; empty when the trace has none.
    pub call_sites: Vec<CallSiteFigures>,
    /// By call stack, by number; empty when the trace has none.
    pub sites: Vec<SiteFigures>,
    /// The frames that the stacks of `sites` name by number.
    pub frames: Vec<WholeFrame>,
    /// Events that contradict those before them, in a damaged trace: frees of nothing, and objects allocated in a slot
    /// that has one.
    pub misfits: u64,
}

impl StatFigures {
    /// What the C library keeps for itself of all that was never freed; nothing where the trace has no call stacks.
    pub fn kept_by_library(&self) -> Sum {
        let stack = |site: &SiteFigures| -> Vec<WholeFrame> {
            site.stack.iter().filter_map(|&frame| self.frames.get(frame as usize).cloned()).collect()
        };
        let never_freed = self.sites.iter().filter(|site| site.at_exit.objects > 0);
        let kept = never_freed.filter(|site| kept_by(&stack(site)).is_some());
        kept.fold(Sum::default(), |sum, site| sum.plus(site.at_exit))
    }
}

/// A time, and what was live then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// Requested bytes alive.
    pub live_bytes: u64,
    /// Objects alive.
    pub live_objects: u64,
    /// Usable bytes alive.
    pub usable_bytes: u64,
    /// Byte clock.
    pub clock_bytes: u64,
    /// ns from the beginning.
    pub time_ns: u64,
    /// Number of the event, from 1.
    pub event: u64,
}

/// Live objects at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveTotals {
    /// Objects.
    pub objects: u64,
    /// Requested bytes.
    pub bytes: u64,
    /// Usable bytes.
    pub usable_bytes: u64,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindFigures {
    /// The kind.
    pub kind: EventKind,
    /// Calls.
    pub calls: u64,
    /// Bytes: requested by allocations, reallocs (whole new sizes) and failures; freed by frees.
    pub bytes: u64,
}

/// Per second; none where the seconds are not known or none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Objects made per second of wall time.
    pub objects_per_s: Option<f64>,
    /// Bytes allocated per second of wall time.
    pub bytes_per_s: Option<f64>,
    /// Objects made per second of CPU.
    pub objects_per_cpu_s: Option<f64>,
    /// Bytes allocated per second of CPU.
    pub bytes_per_cpu_s: Option<f64>,
}

/// Internal fragmentation: usable minus requested bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Internal {
    /// At the peak, bytes.
    pub at_peak_bytes: u64,
    /// At the peak, by the usable bytes, 0 to 1.
    pub at_peak_share: Option<f64>,
    /// Over all blocks that were allocated, reallocs included, bytes.
    pub overall_bytes: u64,
    /// The same by the usable bytes, 0 to 1.
    pub overall_share: Option<f64>,
    /// Blocks whose usable size is unknown; taken as having no slack.
    pub unknown: u64,
}

/// Objects freed soon, by two measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Temporary {
    /// Freed before the next allocation of the thread that allocated them.
    pub before_next_1: u64,
    /// Freed before the tenth next.
    pub before_next_10: u64,
    /// Freed before the hundredth next.
    pub before_next_100: u64,
    /// Freed before 4 KiB more were allocated by the whole program.
    pub within_4_kib: u64,
}

/// Resident sets as points.
pub fn resident(samples: &[Sample]) -> Vec<(u64, u64)> {
    samples.iter().map(|sample| (sample.time_ns, sample.rss_kib)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `trace stat` reported 147 objects that were never freed, and `leaks` that the C library keeps 145 of them.
    #[test]
    fn what_the_c_library_keeps_of_what_is_never_freed_is_known_by_its_call_stacks() {
        let frame = |function: &str, object: &str| WholeFrame {
            function: function.into(),
            object: object.into(),
            ..WholeFrame::default()
        };
        let frames =
            [frame("_dl_allocate_tls", "/lib64/ld-linux-x86-64.so.2"), frame("main", "/bin/p")].into();
        let site = |stack: &[u32], objects| SiteFigures {
            stack: stack.into(),
            at_exit: Sum { objects, bytes: 8 * objects },
            ..SiteFigures::default()
        };
        let sites = vec![site(&[0, 1], 145), site(&[1], 2), site(&[0], 0)];
        let figures = StatFigures { frames, sites, ..StatFigures::default() };
        assert_eq!(figures.kept_by_library(), Sum { objects: 145, bytes: 1160 });
    }
}
