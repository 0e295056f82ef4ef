//! The section on what a collector keeps beyond the live bytes.

use heaptoll_ledger::{Amount, Census, Ledger, Snapshot, Source, Term};
use heaptoll_report::document::{Section, Table};
use heaptoll_report::format::{mib_from_bytes, seconds};
use heaptoll_units::kib;

/// The parts of a collector's memory that Detlefs, Dosser and Zorn could not separate.
pub fn collector(ledger: &Ledger, peak: &Snapshot) -> Section {
    let snapshot = reported(ledger, peak).unwrap_or(peak);
    let census = snapshot.census.filter(is_of_manager);
    let kib = |term: &Option<Term>, value: fn(Amount) -> u64| {
        term.map(|term| heaptoll_units::kib(value(snapshot.amount(term))))
    };
    let table = Table::of(sources(census.as_ref()))
        .text("Source", |(source, ..)| *source)
        .figure("Resident KiB", |(_, term, _)| kib(term, |amount| amount.resident))
        .figure("KiB", |(_, term, _)| kib(term, |amount| amount.total()))
        .text("Source", |(.., known)| *known)
        .notes(notes(census.as_ref()));
    let title = format!("What {} keeps beyond live memory", ledger.manager);
    Section { text: caveats(snapshot, peak, census.as_ref()), ..Section::new(title) }.with(table)
}

/// Whether the manager itself counted.
fn is_of_manager(census: &Census) -> bool {
    census.source == Source::Control
}

/// Whether it is known what a collection would reclaim: one was forced.
fn is_measured(census: &Census) -> bool {
    census.live_after_collection_bytes.is_some()
}

/// The snapshot at the peak, or else the largest in which the manager reported: it reports in a call of the program, so
/// without a call during a snapshot there is no report.
fn reported<'a>(ledger: &'a Ledger, peak: &'a Snapshot) -> Option<&'a Snapshot> {
    let reports = |snapshot: &&Snapshot| snapshot.census.as_ref().is_some_and(is_of_manager);
    let largest = || ledger.snapshots.iter().filter(reports).max_by_key(|snapshot| snapshot.rss_bytes);
    Some(peak).filter(reports).or_else(largest)
}

/// What the figures are not, or not of.
fn caveats(snapshot: &Snapshot, peak: &Snapshot, census: Option<&Census>) -> Vec<String> {
    let Some(census) = census else {
        return vec![
            "The manager reported nothing about its heap (it has no control symbol, include/heaptoll.h, or \
             the program made no call during a snapshot). So freed memory that the collector has not \
             reclaimed counts as free bytes of the heap."
                .to_owned(),
        ];
    };
    let mut text = Vec::new();
    if !std::ptr::eq(snapshot, peak) {
        text.push(format!(
            "At {} s, when {} MiB were resident: at the peak the program made no call, so its manager did not report.",
            seconds(snapshot.time_ns as f64 / 1e9),
            mib_from_bytes(snapshot.rss_bytes as f64)
        ));
    }
    if !is_measured(census) {
        text.push(
            "What a collection would have reclaimed then is unknown: none was forced, because it would have \
             changed the run."
                .to_owned(),
        );
    }
    text
}

/// Each source: what it keeps, if that is known, and by what.
fn sources(census: Option<&Census>) -> [(&'static str, Option<Term>, &'static str); 5] {
    let measured = census.is_some_and(is_measured);
    let after = |term| measured.then_some(term);
    let known = |term| census.is_some().then_some(term);
    let black = census.and_then(|census| census.blacklisted_bytes).map(|_| Term::Blacklisted);
    [
        (
            "headroom between collections",
            after(Term::Headroom),
            "live for the manager before a forced collection, minus live after it",
        ),
        (
            "kept by ambiguous words, or freed and still reachable",
            after(Term::Held),
            "live for the manager after it, minus live in the record",
        ),
        (
            "dead, not split",
            known(Term::Dead).filter(|_| !measured),
            "live for the manager, minus live in the record",
        ),
        ("expansion granularity", known(Term::Unused), "the manager's census: mapped, never carved"),
        ("black-listed", black, "the manager's own count"),
    ]
}

fn notes(census: Option<&Census>) -> Vec<String> {
    let mut notes = vec![
        "A word that points to a freed block may be an address that the program kept, or a number with the \
         same value. Without the types of the program's data they look the same."
            .to_owned(),
    ];
    if let Some(held) = census.and_then(|census| census.held) {
        notes.push(format!(
            "Of all that the collector keeps, live or dead, stacks alone keep {} KiB, static data {} KiB, \
             other mappings {} KiB, registers {} KiB (tithe_held).",
            kib(held.stacks),
            kib(held.statics),
            kib(held.mappings),
            kib(held.registers)
        ));
    }
    notes
}
