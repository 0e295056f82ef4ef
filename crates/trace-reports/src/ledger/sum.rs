//! The sum of a snapshot: its lines by group, which make its resident set.

use heaptoll_ledger::{Amount, How, Snapshot, Term};
use heaptoll_report::document::Table;
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
        let (resident, share) = (resident(terms), per_hundred(amount.resident, snapshot.whole()));
        [name, count(resident as f64), share, kib(amount.swapped), kib(amount.absent), how.into()]
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
        let difference = count(snapshot.difference_bytes as f64 / heaptoll_units::KIB);
        let cells = ["pages that came or went meanwhile", &difference, "", "", "", ""];
        rows.push(cells.map(str::to_owned));
    }
    let all = snapshot.sum();
    let (resident, whole) = (kib(snapshot.rss_bytes), per_hundred(1, 1));
    rows.push(["resident set".into(), resident, whole, kib(all.swapped), kib(all.absent), String::new()]);
    let estimate = "Estimate: from the resident bytes of each mapping, live blocks first.";
    Table::of(rows)
        .text("Where", |row| row[0].clone())
        .figure("Resident KiB", |row| row[1].clone())
        .figure("% of RSS", |row| row[2].clone())
        .when(swapped, |table| table.figure("Swapped KiB", |row| row[3].clone()))
        .figure("Not resident KiB", |row| row[4].clone())
        .text("Source", |row| row[5].clone())
        .note("Not resident: mapped, but without a page (never touched, or given back).")
        .note(
            "Pages: counted byte by byte from the live blocks and the pages of the process. Reported: the \
             manager's own figure; unknown parts count as resident like the memory around them.",
        )
        .notes(snapshot.no_pagemap.as_ref().map(|_| estimate.to_owned()))
        .table()
}

fn how(how: How) -> &'static str {
    match how {
        How::Counted => "pages",
        How::Reported => "reported",
        How::Estimated => "estimate",
    }
}
