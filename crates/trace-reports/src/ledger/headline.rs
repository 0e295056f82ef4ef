//! The sentence on a snapshot as a whole.

use heaptoll_ledger::{Ledger, Snapshot};
use heaptoll_report::format::{mib_from_bytes, plural, seconds};
use heaptoll_units::per_hundred;

use super::groups::{GROUPS, Group, line_name};

/// Which snapshot the one at the peak is, by the rule of [`Ledger::peak`].
pub fn peak_name(ledger: &Ledger, peak: &Snapshot) -> &'static str {
    let is_largest = ledger.snapshots.iter().all(|snapshot| snapshot.rss_bytes <= peak.rss_bytes);
    if is_largest {
        "the largest snapshot"
    } else {
        "the snapshot with most live memory near the largest RSS"
    }
}

/// The process at a snapshot, which `when` names, and what most of it is.
pub fn headline(when: &str, snapshot: &Snapshot) -> String {
    let mut parts: Vec<(u64, &Group)> = GROUPS
        .iter()
        .map(|group| (group.amount(snapshot).resident, group))
        .filter(|(bytes, _)| *bytes > 0)
        .collect();
    parts.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    let shares = parts.iter().take(4).map(|(bytes, group)| {
        let share = per_hundred(*bytes, snapshot.whole());
        format!("{} {share} %{}", group.name, mostly(group, snapshot))
    });
    format!(
        "{when}, after {} s, the process had {} MiB in memory: {}.{}",
        seconds(snapshot.time_ns as f64 / 1e9),
        mib_from_bytes(snapshot.rss_bytes as f64),
        shares.collect::<Vec<_>>().join(", "),
        arenas(snapshot)
    )
}

/// That much of the whole is free in glibc's arenas, and what decides how many there are.
fn arenas(snapshot: &Snapshot) -> String {
    if snapshot.arena_free_bytes < snapshot.whole() / 4 || snapshot.arena_free_bytes == 0 {
        return String::new();
    }
    format!(
        " {} MiB of it are free in {} of glibc's arenas, which it makes for threads. `MALLOC_ARENA_MAX=1` \
         has one arena for all; `heaptoll choose --prefer memory` measures what that saves and costs.",
        mib_from_bytes(snapshot.arena_free_bytes as f64),
        plural(snapshot.arena_windows as usize, "window")
    )
}

/// Which line most of a group is, where it has several and is much of the whole.
fn mostly(group: &Group, snapshot: &Snapshot) -> String {
    let all = group.amount(snapshot).resident;
    let is_named = group.terms.len() > 1 && all >= snapshot.whole() / 4;
    let most = group.terms.iter().find(|&&term| is_named && snapshot.amount(term).resident > all / 2);
    most.map(|&term| format!(" (mostly {})", line_name(term))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{Amount, How, LedgerLine, Term};

    use super::*;

    /// Such a snapshot was called the largest, and the table beside it had larger ones.
    #[test]
    fn the_snapshot_at_the_peak_is_called_the_largest_only_if_it_is() {
        let snapshot = |rss_bytes, live_bytes| Snapshot { rss_bytes, live_bytes, ..Snapshot::default() };
        let name = |snapshots: Vec<Snapshot>| {
            let ledger = Ledger { snapshots, ..Ledger::default() };
            peak_name(&ledger, &ledger.snapshots[ledger.peak().expect("snapshots")])
        };
        assert_eq!(name(vec![snapshot(900, 950), snapshot(1000, 940)]), "the largest snapshot");
        let near = "the snapshot with most live memory near the largest RSS";
        assert_eq!(name(vec![snapshot(700, 960), snapshot(950, 900), snapshot(1000, 10)]), near);
    }

    /// Before, memory that threads' arenas keep was "caches", and nothing showed what decides how much that is.
    #[test]
    fn free_memory_in_arenas_is_named_where_it_is_much() {
        let all = LedgerLine {
            term: Term::Caches,
            amount: Amount { resident: 100 << 20, ..Amount::default() },
            how: How::Counted,
        };
        let snapshot = |arena_windows, free_mib: u64| Snapshot {
            rss_bytes: 100 << 20,
            lines: vec![all],
            arena_windows,
            arena_free_bytes: free_mib << 20,
            ..Snapshot::default()
        };
        let text = headline("Then", &snapshot(8, 81));
        assert!(text.contains(" 81.0 MiB of it are free in 8 windows of glibc's arenas"), "{text}");
        assert!(text.contains("MALLOC_ARENA_MAX=1"), "{text}");
        for none in [snapshot(8, 20), snapshot(0, 0)] {
            assert!(!headline("Then", &none).contains("arena"));
        }
    }
}
