//! The ledger of a whole run: its snapshots, thinned as it grows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_trace::LastFrees;

use crate::snapshot::Snapshot;
use crate::static_data::StaticVariable;

/// Name of the trace's extra chunk that holds a [`Ledger`].
pub const EXTRA: &str = "ledger";

/// Snapshots of a run. The extra chunk "ledger" of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ledger {
    /// Manager under the program.
    pub manager: String,
    /// Whether it is a collector: then a free may have done nothing.
    pub collector: bool,
    /// Whether collections were forced to see what they reclaim.
    pub collected: bool,
    /// Where in the run most was live; none in files from before this was recorded.
    pub live_peak: Option<LivePeak>,
    /// The variables of static data with most bytes in memory at the peak, where static data is a twentieth of it or more.
    pub static_variables: Vec<StaticVariable>,
    /// In order of time.
    #[serde(rename = "moments")]
    pub snapshots: Vec<Snapshot>,
}

/// The event of a process after which most bytes were live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LivePeak {
    /// The process image, by its number among all of the recording.
    pub image: u32,
    /// Events of it until then, as its rings number them: a resize is two.
    pub events: u64,
    /// Bytes requested in live blocks.
    pub live_bytes: u64,
    /// Bytes allocated until then.
    pub clock_bytes: u64,
}

/// The peak is known to one part in this many.
pub const STEP: u64 = 20;
/// A resident set is nearly the largest when this part of it is missing at most, as a divisor; and when no snapshot has the
/// peak of the live bytes to one part in [`STEP`].
const NEAR: u64 = 6;
const NEAR_MISSED: u64 = 4;
/// Number of snapshots that a run keeps, about: between this and twice as many.
pub const WANTED: usize = 40;

impl Ledger {
    /// Adds a snapshot. When there are too many, every second one is dropped, but never the first, the one at the peak, the
    /// one with the most live bytes, the one with the most external fragmentation, and the last. A picture takes the place
    /// of that before.
    pub fn push(&mut self, snapshot: Snapshot) {
        if snapshot.picture.is_some() {
            self.snapshots.iter_mut().for_each(|before| before.picture = None);
        }
        self.snapshots.push(snapshot);
        if self.snapshots.len() <= 2 * WANTED {
            return;
        }
        let last = self.snapshots.len() - 1;
        let kept = [self.peak(), self.fullest(), self.most_pinned(), Some(0), Some(last)];
        let mut at = 0;
        self.snapshots.retain(|_| {
            let keep = at % 2 == 0 || kept.contains(&Some(at));
            at += 1;
            keep
        });
    }

    /// Index of the snapshot at the peak: of those whose resident set is nearly the largest, and with the most live bytes to one
    /// part in [`STEP`], the first with the largest resident set. Where what is freed stays resident, the largest resident set alone may be of any later time. If no snapshot is
    /// of the place where most was live, one before it may have a resident set that is still smaller.
    pub fn peak(&self) -> Option<usize> {
        let most = self.snapshots.iter().map(|snapshot| snapshot.rss_bytes).max()?;
        let live = self.fullest().map_or(0, |at| self.snapshots[at].live_bytes);
        let is_missed =
            self.live_peak.is_some_and(|peak| live < peak.live_bytes.saturating_sub(peak.live_bytes / STEP));
        let near = if is_missed { most / NEAR_MISSED } else { most / NEAR };
        let is_near = |snapshot: &&Snapshot| most - snapshot.rss_bytes <= near;
        let live = self.snapshots.iter().filter(is_near).map(|snapshot| snapshot.live_bytes).max()?;
        // What the program allocated may be written to later.
        let is_at_peak =
            |snapshot: &Snapshot| is_near(&snapshot) && live - snapshot.live_bytes.min(live) <= live / STEP;
        first_most(&self.snapshots, |snapshot| is_at_peak(snapshot).then_some(snapshot.rss_bytes))
    }

    /// The snapshots before the last frees: what a program gives back before it ends stays resident, and would look as if the
    /// program had no use for it.
    ///
    /// The last frees may begin where most was live, and no snapshot be of that place. A snapshot from before a twentieth of
    /// what was live is freed counts as one before them. All, where the fullest is none of these.
    pub fn before_last_frees(&self) -> &[Snapshot] {
        let (mut last_frees, mut end, mut had) = (LastFrees::default(), 0, 0);
        let mut most = self.live_peak;
        for (at, snapshot) in self.snapshots.iter().enumerate() {
            let is_past = |most: &LivePeak| {
                snapshot.clock_bytes >= most.clock_bytes && snapshot.live_bytes < most.live_bytes
            };
            if let Some(most) = most.take_if(|most| is_past(most))
                && last_frees.begin_after(most.live_bytes, most.clock_bytes)
            {
                (end, had) = (at, most.live_bytes);
            }
            if last_frees.begin_after(snapshot.live_bytes, snapshot.clock_bytes) {
                (end, had) = (at + 1, snapshot.live_bytes);
            } else if end == at && snapshot.live_bytes >= had - had / STEP {
                end = at + 1;
            }
        }
        let is_fullest_before = self.fullest().is_some_and(|fullest| fullest < end);
        if is_fullest_before { &self.snapshots[..end] } else { &self.snapshots }
    }

    /// Index of the snapshot with the most live bytes, the first of them.
    pub fn fullest(&self) -> Option<usize> {
        first_most(&self.snapshots, |snapshot| snapshot.live_bytes)
    }

    /// Index of the snapshot with the most external fragmentation on pages whose holders are known, the first of them.
    pub fn most_pinned(&self) -> Option<usize> {
        first_most(&self.snapshots, |snapshot| snapshot.pins.as_ref().map_or(0, |pins| pins.bytes))
    }
}

fn first_most<T: Ord>(snapshots: &[Snapshot], of: impl Fn(&Snapshot) -> T) -> Option<usize> {
    let most = snapshots.iter().map(&of).max()?;
    snapshots.iter().position(|snapshot| of(snapshot) == most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::How;
    use crate::picture::Picture;
    use crate::pins::Pins;

    fn snapshot(time_ns: u64, rss_bytes: u64, live_bytes: u64) -> Snapshot {
        Snapshot { time_ns, rss_bytes, live_bytes, ..Snapshot::default() }
    }

    #[test]
    fn a_peak_stays_however_many_come_after_it() {
        let mut ledger = Ledger::default();
        for at in 0..10_000 {
            let rss = if at == 77 { 1 << 30 } else { at };
            let live = if at == 333 { 1 << 29 } else { at };
            ledger.push(snapshot(at, rss, live));
        }
        let at = |found: Option<usize>| found.map(|at| ledger.snapshots[at].time_ns);
        assert_eq!((at(ledger.peak()), at(ledger.fullest())), (Some(77), Some(333)));
        assert_eq!(
            (ledger.snapshots[0].time_ns, ledger.snapshots.last().map(|last| last.time_ns)),
            (0, Some(9999))
        );
        assert!(ledger.snapshots.len() <= 2 * WANTED);
        assert_eq!(Ledger::default().peak(), None);
    }

    /// Before, a page more that was written to later made any snapshot the peak, though nothing was live there.
    #[test]
    fn of_snapshots_with_nearly_the_largest_resident_set_the_peak_has_most_live_bytes() {
        let levels = [(833, 1100), (834, 900), (835, 990), (1000, 100), (999, 990), (980, 0)];
        let snapshots = levels.map(|(rss, live)| snapshot(0, rss, live));
        let mut ledger = Ledger { snapshots: snapshots.into(), ..Ledger::default() };
        assert_eq!(ledger.peak(), Some(4), "the larger of two");
        ledger.snapshots[3].rss_bytes = 1003;
        // A snapshot in the middle of the frees was shown, and the heading had the part that another one has.
        let peak = |live_bytes| Some(LivePeak { live_bytes, ..LivePeak::default() });
        ledger.live_peak = peak(1050);
        assert_eq!(ledger.peak(), Some(4), "a snapshot is of the most live bytes");
        ledger.live_peak = peak(1500);
        assert_eq!(ledger.peak(), Some(0), "none is");
        ledger.live_peak = None;
        ledger.snapshots.push(snapshot(0, 2000, 50));
        assert_eq!(ledger.peak(), Some(6), "mostly free, and larger than all others");
    }

    /// A program writes to memory after it has allocated all of it, and an early snapshot was shown.
    #[test]
    fn of_snapshots_with_nearly_the_most_live_bytes_the_peak_has_the_largest_resident_set() {
        let levels = [(870, 1000), (900, 1000), (1000, 960), (990, 1000), (1000, 940)];
        let snapshots = levels.map(|(rss, live)| snapshot(0, rss, live)).into();
        assert_eq!(Ledger { snapshots, ..Ledger::default() }.peak(), Some(2));
    }

    #[test]
    fn the_last_frees_begin_where_the_program_only_frees_until_its_end() {
        let levels = [(500, 500), (990, 1000), (100, 1001), (0, 1001)];
        let snapshots = levels.map(|(live, clock_bytes)| Snapshot { clock_bytes, ..snapshot(0, 1000, live) });
        let mut ledger = Ledger { snapshots: snapshots.into(), ..Ledger::default() };
        let before = |ledger: &Ledger| ledger.before_last_frees().len();
        assert_eq!(before(&ledger), 2);
        // The program works on.
        ledger.snapshots.push(Snapshot { clock_bytes: 1101, ..snapshot(0, 1003, 50) });
        assert_eq!(before(&ledger), 5);
        // None was taken between the peak, which the trace knows, and the end.
        ledger.live_peak = Some(LivePeak { live_bytes: 1100, clock_bytes: 1101, ..LivePeak::default() });
        assert_eq!(before(&ledger), 4);
        ledger.snapshots[4].live_bytes = 1050;
        assert_eq!(before(&ledger), 5, "next to nothing is freed");
        ledger.snapshots[4].live_bytes = 50;
        ledger.snapshots.drain(..4);
        assert_eq!(before(&ledger), 1, "no other");
    }

    #[test]
    fn the_worst_fragmentation_stays_and_has_the_only_picture() {
        let mut ledger = Ledger::default();
        for at in 0..1000 {
            let is_worst = at <= 77;
            let pins = Some(Pins { bytes: if is_worst { 100 + at } else { 1 }, ..Pins::default() });
            let picture = is_worst.then(Picture::default);
            ledger.push(Snapshot { pins, picture, ..snapshot(at, at, at) });
        }
        let worst = ledger.most_pinned().expect("there are snapshots");
        assert_eq!(ledger.snapshots[worst].time_ns, 77);
        let pictures = ledger.snapshots.iter().filter(|snapshot| snapshot.picture.is_some());
        assert_eq!(pictures.map(|snapshot| snapshot.time_ns).collect::<Vec<u64>>(), [77]);
    }

    #[test]
    fn the_keys_of_stored_ledgers_stay() {
        let line = r#"{"term":"live","resident":7,"swapped":0,"absent":0,"how":"told"}"#;
        let stored = format!(r#"{{"moments":[{{"heap_places":3,"lines":[{line}]}}]}}"#);
        let ledger: Ledger = serde_json::from_str(&stored).expect("it parses");
        let snapshot = &ledger.snapshots[0];
        assert_eq!((snapshot.heap_ranges, snapshot.lines[0].how), (3, How::Reported));
        let again = serde_json::to_value(&ledger).expect("it is JSON");
        let snapshot = &again["moments"][0];
        assert_eq!((&snapshot["heap_places"], &snapshot["lines"][0]["how"]), (&3.into(), &"told".into()));
    }
}
