//! How much of the peak the snapshots show.

use heaptoll_ledger::{Ledger, Level, LivePeak, STEP};
use heaptoll_report::format::{mib_from_bytes, plural};
use heaptoll_trace::Tables;
use heaptoll_units::per_hundred;

/// The most of the whole run, whether a snapshot was taken then or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes requested in live blocks, which a trace has exactly; none of a trace without an ending.
    pub live_bytes: Option<u64>,
    /// The largest resident set that anything has read, bytes.
    pub rss_bytes: u64,
}

impl Peak {
    /// That of a trace with this ledger.
    pub fn of(tables: &Tables, ledger: &Ledger) -> Peak {
        let live_bytes = tables.ending.as_ref().map(|ending| ending.max_live_bytes).filter(|most| *most > 0);
        let samples = tables.samples.iter().map(|sample| sample.rss_kib.saturating_mul(1024));
        let snapshots = ledger
            .snapshots
            .iter()
            .map(|snapshot| snapshot.vm_hwm_bytes.max(Level::from(snapshot).rss_bytes));
        Peak { live_bytes, rss_bytes: samples.chain(snapshots).max().unwrap_or(0) }
    }

    /// The part of it that a level has, of the live bytes or of the resident set, whichever is less: what it is, the most, and its part.
    fn seen(&self, at: Level) -> (&'static str, u64, u64) {
        let of_rss = (self.rss_bytes.max(at.rss_bytes), at.rss_bytes);
        // Live bytes that are next to nothing of the resident set show nothing of its peak.
        match self.live_bytes.map(|most| (most.max(at.live_bytes), at.live_bytes)) {
            Some(of_live) if of_live.0 >= self.rss_bytes / STEP && is_less(of_live, of_rss) => {
                ("live memory", of_live.0, of_live.1)
            }
            _ => ("RSS", of_rss.0, of_rss.1),
        }
    }

    /// Whether the snapshots show it to a twentieth.
    pub fn is_known(&self, ledger: &Ledger) -> bool {
        let (_, most, seen) = self.seen(most_of(ledger));
        most - seen <= most / STEP
    }

    /// The heading of what the snapshot at the peak shows.
    pub fn heading(&self, ledger: &Ledger) -> String {
        match self.is_known(ledger) {
            true => format!("At the peak, known within {} %", 100 / STEP),
            false => {
                let shown = ledger.peak().map_or(Level::default(), |at| Level::from(&ledger.snapshots[at]));
                let (what, most, seen) = self.seen(shown);
                format!(
                    "The peak of {what} was missed: these shares are of another moment, with {} % of it",
                    per_hundred(seen, most)
                )
            }
        }
    }

    /// What the snapshots have of it, and what to do if that is too little.
    pub fn sentences(&self, ledger: &Ledger) -> String {
        let mib = |bytes: u64| mib_from_bytes(bytes as f64);
        let Level { live_bytes: live, rss_bytes: rss } = most_of(ledger);
        let count = plural(ledger.snapshots.len(), "snapshot");
        let most_rss = mib(self.rss_bytes.max(rss));
        let most = match self.live_bytes {
            Some(most) => {
                format!("at most {} MiB were live and {most_rss} MiB resident", mib(most.max(live)))
            }
            None => format!("at most {most_rss} MiB were resident, with an unknown part live"),
        };
        // Nothing stops a program where most of it is resident.
        let is_missed = |most: u64| most >= self.rss_bytes / STEP && most.saturating_sub(live) > most / STEP;
        let advice = match self.live_bytes.is_some_and(is_missed) {
            true => " Add `--exact`: it runs the program twice, and takes a snapshot at the live peak.",
            false => "",
        };
        format!(
            "In the whole run {most}; in the {count}, {} MiB live and {} MiB resident.{advice}",
            mib(live),
            mib(rss)
        )
    }
}

/// The most of each figure in a snapshot.
fn most_of(ledger: &Ledger) -> Level {
    ledger.snapshots.iter().map(Level::from).fold(Level::default(), Level::max)
}

/// What the peaks of two runs of a program have in common. The second run stopped at the peak of the first.
pub fn compared(first: LivePeak, second: LivePeak) -> String {
    let of = |peak: LivePeak| {
        format!(
            "{} MiB after {}",
            mib_from_bytes(peak.live_bytes as f64),
            plural(peak.events as usize, "call")
        )
    };
    let is_same = LivePeak { image: second.image, ..first } == second;
    match is_same {
        true => format!(
            "Both runs had their live peak at the same call, and the snapshot was taken there: \
                         {}.",
            of(first)
        ),
        false => format!(
            "The runs allocated differently: the live peak was {} in the first and {} in the second, which \
             is shown.",
            of(first),
            of(second)
        ),
    }
}

/// Whether one part of a whole is less than another.
fn is_less((most, seen): (u64, u64), (other_most, other_seen): (u64, u64)) -> bool {
    u128::from(seen) * u128::from(other_most) < u128::from(other_seen) * u128::from(most)
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::Snapshot;

    use super::*;

    fn ledger(levels: &[(u64, u64)]) -> Ledger {
        let snapshot =
            |&(live_bytes, rss_bytes): &(u64, u64)| Snapshot { live_bytes, rss_bytes, ..Snapshot::default() };
        Ledger { snapshots: levels.iter().map(snapshot).collect(), ..Ledger::default() }
    }

    fn peak(live_bytes: u64, rss_bytes: u64) -> Peak {
        Peak { live_bytes: Some(live_bytes), rss_bytes }
    }

    /// The first section was called "At the peak" where 29 % of what was ever live lay in its snapshot, and where a warning
    /// above it stated that the peak was not sampled.
    #[test]
    fn one_heading_states_whether_the_peak_is_known() {
        let heading = |peak: Peak, levels: &[(u64, u64)]| peak.heading(&ledger(levels));
        let known = "At the peak, known within 5 %";
        assert_eq!(heading(peak(1000, 2000), &[(950, 1900), (10, 20)]), known);
        assert_eq!(heading(peak(1000, 2000), &[(10, 2000), (1000, 10)]), known, "in two snapshots");
        let missed = |share: &str| {
            format!(
                "The peak of live memory was missed: these shares are of another moment, with {share} % of it"
            )
        };
        let rss = "The peak of RSS was missed: these shares are of another moment, with 50.0 % of it";
        assert_eq!(heading(peak(1000, 2000), &[(940, 2000)]), missed("94.0"));
        assert_eq!(
            heading(peak(1000, 2000), &[(1000, 910)]),
            "The peak of RSS was missed: these shares are of another moment, with 45.5 % of it"
        );
        assert_eq!(heading(peak(1000, 2000), &[(290, 910)]), missed("29.0"));
        // Little is live: the resident set decides.
        assert_eq!(heading(peak(90, 2000), &[(0, 2000)]), known);
        // More in a snapshot than anything else has read; a trace without an ending.
        assert_eq!(heading(peak(0, 0), &[(5, 2000)]), known);
        assert_eq!(heading(Peak { live_bytes: None, rss_bytes: 2000 }, &[(5, 1000)]), rss);
    }

    #[test]
    fn two_runs_that_allocate_differently_are_not_called_exact() {
        let first = LivePeak { image: 1, events: 5, live_bytes: 3 << 20, clock_bytes: 7 << 20 };
        let text = |second| compared(first, second);
        assert!(text(LivePeak { image: 2, ..first }).contains("taken there: 3.0 MiB after 5 calls"));
        for second in
            [LivePeak { events: 6, ..first }, LivePeak { clock_bytes: 1, ..first }, LivePeak::default()]
        {
            assert!(text(second).contains("allocated differently"), "{second:?}");
        }
    }

    #[test]
    fn the_most_live_bytes_are_those_of_the_run_and_not_of_a_sample() {
        let mib = 1 << 20;
        let three = ledger(&[(4 * mib, 5 * mib), (9 * mib, 11 * mib), (mib, 11 * mib)]);
        let missed = peak(23 * mib, 30 * mib).sentences(&three);
        assert!(missed.starts_with("In the whole run at most 23"), "{missed}");
        assert!(
            missed.contains("in the 3 snapshots, 9.0 MiB live and 11") && missed.contains("--exact"),
            "{missed}"
        );
        let known = peak(9 * mib, 11 * mib).sentences(&three);
        assert!(!known.contains("--exact"), "{known}");
        assert!(Peak::default().sentences(&three).contains("an unknown part live"));
        // `--exact` was advised where it had been given and cannot help.
        let resident = peak(9 * mib, 83 * mib).sentences(&three);
        assert!(!resident.contains("--exact"), "{resident}");
    }
}
