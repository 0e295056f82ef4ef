//! The sum of a snapshot: its lines by group, which make its resident set.

use heaptoll_ledger::{Amount, How, Snapshot, Term};
use heaptoll_report::document::{Column, Table};
use heaptoll_report::format::count;
use heaptoll_units::{kib, per_hundred};

use super::groups::{GROUPS, line_name};

/// Resident KiB of each line, rounded so that they make the sum: what has lost most is rounded up.
fn rounded(snapshot: &Snapshot) -> Vec<(Term, u64)> {
    let mut lines: Vec<(Term, u64, u64)> = snapshot
        .lines
        .iter()
        .map(|line| (line.term, line.amount.resident / 1024, line.amount.resident % 1024))
        .collect();
    let lost: u64 = lines.iter().map(|&(_, _, lost)| lost).sum();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(lines[at].2));
    for at in order.into_iter().take((lost / 1024) as usize) {
        lines[at].1 += 1;
    }
    lines.into_iter().map(|(term, kib, _)| (term, kib)).collect()
}

/// The sum of one snapshot.
pub fn sum(snapshot: &Snapshot) -> Table {
    let rounded = rounded(snapshot);
    let resident = |terms: &[Term]| -> u64 {
        rounded.iter().filter(|(term, _)| terms.contains(term)).map(|&(_, kib)| kib).sum()
    };
    let swapped = snapshot.sum().swapped > 0;
    let row = |name: String, terms: &[Term], amount: Amount, how: &str| {
        let mut cells =
            vec![name, count(resident(terms) as f64), per_hundred(amount.resident, snapshot.whole())];
        if swapped {
            cells.push(kib(amount.swapped));
        }
        cells.extend([kib(amount.absent), how.into()]);
        cells
    };
    let mut rows = Vec::new();
    for group in &GROUPS {
        let lines: Vec<_> = snapshot.lines.iter().filter(|line| group.terms.contains(&line.term)).collect();
        if lines.is_empty() && !group.always {
            continue;
        }
        // A group with a single line shows that line's source.
        let alone = group.terms.len() == 1 || lines.is_empty();
        let how = if alone { lines.first().map_or("", |line| how(line.how)) } else { "" };
        rows.push(row(group.name.into(), group.terms, group.amount(snapshot), how));
        for line in group.terms.iter().filter_map(|term| lines.iter().find(|line| line.term == *term)) {
            if !alone {
                rows.push(row(
                    format!("· {}", line_name(line.term)),
                    &[line.term],
                    line.amount,
                    self::how(line.how),
                ));
            }
        }
    }
    if snapshot.difference_bytes != 0 {
        let mut cells = vec!["pages that came or went meanwhile".to_owned()];
        cells.push(count(snapshot.difference_bytes as f64 / heaptoll_units::KIB));
        cells.resize(if swapped { 6 } else { 5 }, String::new());
        rows.push(cells);
    }
    let all = snapshot.sum();
    let mut total = vec!["resident set".to_owned(), kib(snapshot.rss_bytes), per_hundred(1, 1)];
    if swapped {
        total.push(kib(all.swapped));
    }
    total.extend([kib(all.absent), String::new()]);
    rows.push(total);
    let mut columns =
        vec![Column::text("Where"), Column::figures("Resident KiB"), Column::figures("% of RSS")];
    if swapped {
        columns.push(Column::figures("Swapped KiB"));
    }
    columns.extend([Column::figures("Not resident KiB"), Column::text("Source")]);
    let mut notes = vec![
        "Not resident: mapped, but without a page (never touched, or given back).".to_owned(),
        "Pages: counted byte by byte from the live blocks and the pages of the process. Reported: the \
         manager's own figure; unknown parts count as resident like the memory around them."
            .into(),
    ];
    if snapshot.no_pagemap.is_some() {
        notes.push("Estimate: from the resident bytes of each mapping, live blocks first.".into());
    }
    Table { caption: String::new(), columns, rows, notes }
}

fn how(how: How) -> &'static str {
    match how {
        How::Counted => "pages",
        How::Reported => "reported",
        How::Estimated => "estimate",
    }
}
