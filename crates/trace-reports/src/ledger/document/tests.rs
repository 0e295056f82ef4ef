//! Tests of the ledger's document: its sum, its snapshots, its warnings.

use heaptoll_ledger::{Amount, How, LedgerLine, Term};
use heaptoll_report::document::{Form, Item};
use heaptoll_report::format::NONE;

use super::*;

fn snapshot(time_ns: u64, resident: &[(Term, u64)]) -> Snapshot {
    let lines: Vec<LedgerLine> = resident
        .iter()
        .map(|&(term, resident)| LedgerLine {
            term,
            amount: Amount { resident, swapped: 0, absent: 1024 },
            how: How::Counted,
        })
        .collect();
    let rss_bytes = resident.iter().map(|(_, bytes)| bytes).sum();
    Snapshot { time_ns, rss_bytes, live_bytes: resident[0].1, lines, ..Snapshot::default() }
}

fn cells(document: &Document, section: usize) -> Vec<Vec<String>> {
    let Item::Table(table) = &document.sections[section].items[0] else { panic!("no table") };
    table.rows.iter().map(|row| row.iter().map(|cell| cell.text.clone()).collect()).collect()
}

#[test]
fn the_rows_of_the_sum_make_the_resident_set() {
    // 1.5 KiB, 0.75 and 0.75, 1 KiB: 4 KiB in all.
    let lines = [(Term::Live, 1536), (Term::Internal, 768), (Term::Stacks, 768), (Term::Code, 1024)];
    let ledger = Ledger { snapshots: vec![snapshot(1, &lines)], ..Ledger::default() };
    let rows = cells(&document(&ledger, "a program", &Peak::default()), 0);
    let groups: Vec<&Vec<String>> = rows.iter().filter(|row| !row[0].starts_with('·')).collect();
    let figure = |row: &Vec<String>| row[1].parse::<u64>().expect("a figure");
    let (total, parts) = groups.split_last().expect("rows");
    assert_eq!((total[0].as_str(), figure(total)), ("resident set", 4));
    assert_eq!(parts.iter().map(|row| figure(row)).sum::<u64>(), 4, "{rows:?}");
    // Lines below their group.
    assert!(rows.iter().any(|row| row[0] == "· stacks") && !rows.iter().any(|row| row[0] == "· requested"));
}

#[test]
fn huge_pages_without_blocks_get_a_sentence() {
    let mut only = snapshot(1, &[(Term::Live, 4096)]);
    assert_eq!(huge(&only), None);
    only.huge_free_bytes = 1024;
    // "69.8 MiB of it" followed a sentence on 34.6 MiB of live blocks.
    assert!(
        huge(&only).is_some_and(|text| text.contains(" MiB of RSS have no live block and lie on huge pages"))
    );
    only.rss_bytes = 1 << 20;
    assert_eq!(huge(&only), None);
}

#[test]
fn a_snapshot_with_several_names_is_shown_once() {
    let low = snapshot(1, &[(Term::Live, 4096)]);
    let high = snapshot(2, &[(Term::Live, 8192)]);
    let last = snapshot(3, &[(Term::Live, 4096), (Term::Caches, 2048)]);
    let ledger = Ledger { snapshots: vec![low, high, last], ..Ledger::default() };
    let rows = cells(&document(&ledger, "a program", &Peak::default()), 1);
    assert_eq!(rows[0].len(), 3, "{rows:?}");
    let Item::Chart(chart) = &document(&ledger, "a program", &Peak::default()).sections[2].items[1] else {
        panic!("no chart")
    };
    assert!(chart.series.iter().all(|series| series.points.len() == 3));
    assert_eq!(chart.form, Form::Stacked);
}

#[test]
fn warnings_come_first() {
    let mut bad = snapshot(1, &[(Term::Live, 4096)]);
    bad.defects.unmapped_blocks = 2;
    bad.no_pagemap = Some("Permission denied".into());
    bad.rss_bytes += 1;
    let ledger = Ledger { snapshots: vec![bad], collected: true, ..Ledger::default() };
    assert_eq!(document(&ledger, "a program", &Peak::default()).warnings.len(), 4);
}

#[test]
fn a_collectors_sources_are_distinguished_or_reported_as_unknown() {
    let mut ledger = Ledger {
        manager: "tithe".into(),
        collector: true,
        snapshots: vec![snapshot(1, &[(Term::Live, 4096), (Term::Headroom, 1024)])],
        ..Ledger::default()
    };
    let rows = |ledger: &Ledger| {
        let document = document(ledger, "a program", &Peak::default());
        let at = document.sections.len() - 1;
        (document.sections[at].text.len(), cells(&document, at))
    };
    let (words, table) = rows(&ledger);
    assert_eq!(words, 1);
    assert!(table.iter().all(|row| row[1] == NONE));
    ledger.snapshots[0].census = Some(heaptoll_ledger::Census {
        live_after_collection_bytes: Some(1),
        ..heaptoll_ledger::Census::default()
    });
    let (words, table) = rows(&ledger);
    assert_eq!((words, table[0][1].as_str(), table[0][2].as_str()), (0, "1", "2"));
    // The manager did not report at the peak: another snapshot is shown.
    ledger.snapshots.push(snapshot(2, &[(Term::Live, 9999)]));
    let (words, table) = rows(&ledger);
    assert_eq!((words, table[0][1].as_str()), (1, "1"));
}
