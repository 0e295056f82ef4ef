//! What was freed around the survivors: on the pages that a call site's live blocks hold, whose blocks had been there.

use heaptoll_ledger::Picture;
use heaptoll_report::document::Table;
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::{kib, part, per_hundred};

use super::pin_rows::Row;

/// Call sites of live blocks that are shown.
const HOLDERS: usize = 5;
/// Call sites of freed blocks of each.
const FREED: usize = 4;

/// What was freed on the pages of one call site.
struct Group {
    /// Row of the call site of the live blocks.
    row: usize,
    held_bytes: u64,
    /// By row of the call site of the freed blocks, most first.
    freed: Vec<(usize, u64)>,
    others_bytes: u64,
    unused_bytes: u64,
}

/// The table, and a sentence on the call site that holds most; none where nothing is known.
pub fn shown(picture: &Picture, rows: &[Row], call_sites: &mut CallSites) -> Option<(Table, String)> {
    let groups = groups(picture, rows, call_sites);
    let first = groups.first()?;
    let held: u64 = groups.iter().map(|group| group.held_bytes).sum();
    if held == 0 {
        return None;
    }
    let sentence = sentence(first, call_sites);
    Some((table(picture, &groups, call_sites), sentence))
}

/// In the order of `rows`.
fn groups(picture: &Picture, rows: &[Row], call_sites: &mut CallSites) -> Vec<Group> {
    let mut groups: Vec<Group> = rows
        .iter()
        .take(HOLDERS)
        .map(|row| Group { row: row.row, held_bytes: 0, freed: Vec::new(), others_bytes: 0, unused_bytes: 0 })
        .collect();
    for around in &picture.around {
        let row = call_sites.row(around.site);
        let Some(group) = groups.iter_mut().find(|group| group.row == row) else { continue };
        group.held_bytes += around.held_bytes;
        group.others_bytes += around.others_bytes;
        group.unused_bytes += around.unused_bytes;
        for freed in &around.freed {
            let row = call_sites.row(freed.site);
            match group.freed.iter_mut().find(|(known, _)| *known == row) {
                Some((_, bytes)) => *bytes += freed.bytes,
                None => group.freed.push((row, freed.bytes)),
            }
        }
    }
    groups.retain(|group| group.held_bytes > 0);
    for group in &mut groups {
        group.freed.sort_by_key(|&(row, bytes)| (std::cmp::Reverse(bytes), row));
        let rest = group.freed.split_off(group.freed.len().min(FREED));
        group.others_bytes += rest.iter().map(|(_, bytes)| bytes).sum::<u64>();
    }
    groups
}

fn sentence(group: &Group, call_sites: &CallSites) -> String {
    let mut parts: Vec<String> = group
        .freed
        .iter()
        .take(3)
        .map(|(row, bytes)| format!("{} by {}", part(*bytes, group.held_bytes), call_sites.name(*row)))
        .collect();
    if parts.is_empty() {
        parts.push("by no freed block".into());
    }
    format!("The free bytes that {} pins were last used: {}.", call_sites.name(group.row), parts.join("; "))
}

fn table(picture: &Picture, groups: &[Group], call_sites: &CallSites) -> Table {
    let mut rows = Vec::new();
    for group in groups {
        let mut name = call_sites.name(group.row);
        let mut line = |freed: String, bytes: u64| {
            if bytes > 0 {
                rows.push((std::mem::take(&mut name), freed, bytes, group.held_bytes));
            }
        };
        group.freed.iter().for_each(|(row, bytes)| line(call_sites.name(*row), *bytes));
        line("all other call sites".into(), group.others_bytes);
        line("no freed block recorded".into(), group.unused_bytes);
    }
    let sample = match picture.followed_one_in {
        0 | 1 => String::new(),
        many => format!(" Estimated from one page in {many}, chosen by its address."),
    };
    let scale = picture.followed_one_in.max(1);
    Table::of(rows)
        .sites("Call site of the live blocks", |(name, ..)| name.clone())
        .sites("Freed around them: call site", |(_, freed, ..)| freed.clone())
        .figure("KiB", |(.., bytes, _)| kib(bytes.saturating_mul(scale)))
        .figure("%", |(.., bytes, held)| per_hundred(*bytes, *held))
        .note(format!(
            "Free bytes that the call site pins, by the call site of the last block freed there. No freed block \
             recorded: never used, between blocks, or the manager's own.{sample}"
        ))
        .table()
}
