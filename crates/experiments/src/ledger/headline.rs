//! The sentence on a snapshot as a whole.

use heaptoll_ledger::Snapshot;
use heaptoll_report::format::{mib_from_bytes, seconds};
use heaptoll_units::per_hundred;

use super::groups::{GROUPS, Group, line_name};

/// The process at a snapshot, and what most of it is.
pub fn headline(snapshot: &Snapshot) -> String {
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
        "After {} s the process had {} MiB in memory: {}.",
        seconds(snapshot.time_ns as f64 / 1e9),
        mib_from_bytes(snapshot.rss_bytes as f64),
        shares.collect::<Vec<_>>().join(", ")
    )
}

/// Which line most of a group is, where it has several and is much of the whole.
fn mostly(group: &Group, snapshot: &Snapshot) -> String {
    let all = group.amount(snapshot).resident;
    let is_named = group.terms.len() > 1 && all >= snapshot.whole() / 4;
    let most = group.terms.iter().find(|&&term| is_named && snapshot.amount(term).resident > all / 2);
    most.map(|&term| format!(" (mostly {})", line_name(term))).unwrap_or_default()
}
