//! The document of the ledger: sentences, tables and a chart.

use heaptoll_ledger::{Ledger, Snapshot, Source};
use heaptoll_report::document::{Column, Document, Section, Table};
use heaptoll_report::format::{count, mib_from_bytes, plural, seconds};
use heaptoll_units::kib;

use super::collector::collector;
use super::groups::shown;
use super::headline::{headline, peak_name};
use super::over_time::{chart, over_time};
use super::peak::Peak;
use super::stays::Stays;
use super::sum::sum;

/// The document of a ledger that has snapshots.
pub fn document(ledger: &Ledger, subject: &str, most: &Peak) -> Document {
    let mut document = Document {
        title: "Where the memory is".into(),
        subtitle: format!("{subject}, under {}", ledger.manager),
        ..Document::default()
    };
    let (Some(peak), Some(fullest)) = (ledger.peak(), ledger.fullest()) else { return document };
    let snapshots = &ledger.snapshots;
    let top = &snapshots[peak];
    document.warnings = warnings(ledger);
    document.sections.push(Section {
        title: most.heading(ledger),
        text: std::iter::once(headline(&format!("At {}", peak_name(ledger, top)), top))
            .chain(huge(top))
            .chain(
                Stays::of(ledger).filter(|stays| !stays.leads).map(|stays| stays.sentence(&ledger.manager)),
            )
            .chain([most.sentences(ledger)])
            .collect(),
        items: vec![sum(top).into()],
    });
    let fullest_name = format!("most live of {}", plural(snapshots.len(), "snapshot"));
    let named = named([(fullest, &fullest_name), (peak, "shown above"), (snapshots.len() - 1, "last")]);
    if named.len() > 1 {
        let section = Section::new("The peak and other snapshots");
        document.sections.push(section.with(side_by_side(snapshots, &named)));
    }
    let section = Section::new("Over time").with(over_time(ledger, peak)).with(chart(snapshots));
    document.sections.push(section);
    if ledger.collector {
        document.sections.push(collector(ledger, top));
    }
    document.facts = facts(ledger, top);
    document
}

/// A sentence on what huge pages keep in memory, where it is at least a twentieth of the resident set.
fn huge(snapshot: &Snapshot) -> Option<String> {
    let free = snapshot.huge_free_bytes;
    (free > 0 && free >= snapshot.rss_bytes / 20).then(|| {
        format!(
            "{} MiB of RSS have no live block and lie on huge pages: they are resident whether or not the \
             program has used them.",
            mib_from_bytes(free as f64)
        )
    })
}

/// Snapshots by number, each with all its names.
fn named(snapshots: [(usize, &str); 3]) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    for (at, name) in snapshots {
        match all.iter_mut().find(|(known, _)| *known == at) {
            Some((_, names)) => *names = format!("{names}, {name}"),
            None => all.push((at, name.into())),
        }
    }
    all.sort_by_key(|&(at, _)| at);
    all
}

fn side_by_side(snapshots: &[Snapshot], named: &[(usize, String)]) -> Table {
    type Row = (&'static str, Box<dyn Fn(&Snapshot) -> String>);
    let row = |name, value: fn(&Snapshot) -> String| -> Row { (name, Box::new(value)) };
    let groups = shown(snapshots).map(|group| -> Row {
        (group.name, Box::new(move |one: &Snapshot| kib(group.amount(one).resident)))
    });
    let rows = std::iter::once(row("after s", |snapshot| seconds(snapshot.time_ns as f64 / 1e9)))
        .chain(groups)
        .chain([
            row("resident set", |snapshot| kib(snapshot.rss_bytes)),
            row("live blocks", |snapshot| count(snapshot.live_blocks as f64)),
            row("requested in them, resident or not", |snapshot| kib(snapshot.live_bytes)),
        ]);
    Table::of(rows)
        .text("Resident KiB", |(name, _)| *name)
        .each(named, |(_, name)| Column::figures(name), |(_, value), (at, _)| value(&snapshots[*at]))
        .table()
}

fn warnings(ledger: &Ledger) -> Vec<String> {
    let snapshots = &ledger.snapshots;
    let mut warnings = Vec::new();
    if ledger.collected {
        warnings.push("A collection was forced at every snapshot, which changed the run.".into());
    }
    if let Some(why) = snapshots.iter().find_map(|snapshot| snapshot.no_pagemap.as_ref()) {
        warnings.push(format!(
            "The pages of the process could not be read ({why}): the resident parts of the heap are \
             estimates."
        ));
    }
    if let Some(snapshot) = snapshots.iter().max_by_key(|snapshot| snapshot.defects.unmapped_blocks)
        && snapshot.defects.unmapped_blocks > 0
    {
        warnings.push(format!(
            "At {} s, {} ({} bytes) of the record lay in unmapped memory, the first at {:#x}. Either the \
             recorder missed their frees, or the manager handed out memory that it does not have.",
            seconds(snapshot.time_ns as f64 / 1e9),
            plural(snapshot.defects.unmapped_blocks as usize, "live block"),
            count(snapshot.defects.unmapped_bytes as f64),
            snapshot.defects.unmapped_address
        ));
    }
    if let Some(snapshot) = snapshots.iter().max_by_key(|snapshot| snapshot.defects.overlapping_blocks)
        && snapshot.defects.overlapping_blocks > 0
    {
        warnings.push(format!(
            "At {} s, {} overlapped others by {} bytes, which count once.",
            seconds(snapshot.time_ns as f64 / 1e9),
            plural(snapshot.defects.overlapping_blocks as usize, "live block"),
            count(snapshot.defects.overlapping_bytes as f64)
        ));
    }
    if let Some(broken) = snapshots.iter().find(|snapshot| !snapshot.closes()) {
        warnings.push(format!(
            "The lines of the snapshot at {} s do not add up to its RSS: the file was changed.",
            seconds(broken.time_ns as f64 / 1e9)
        ));
    }
    warnings
}

fn facts(ledger: &Ledger, snapshot: &Snapshot) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let took = ledger.snapshots.iter().map(|snapshot| snapshot.took_ns).max().unwrap_or_default();
    let mut facts = vec![
        fact("manager", ledger.manager.clone()),
        fact(
            "snapshots",
            format!("{}, the longest took {:.1} ms", ledger.snapshots.len(), took as f64 / 1e6),
        ),
        fact("live blocks at the peak", count(snapshot.live_blocks as f64)),
        fact(
            "address space of the heap",
            format!("{} KiB in {}", kib(snapshot.heap_bytes), plural(snapshot.heap_ranges as usize, "place")),
        ),
        fact("kept for later, without access", format!("{} KiB", kib(snapshot.reserved_bytes))),
        fact(
            "on huge pages",
            format!(
                "{} KiB, {} KiB of it without a live block",
                kib(snapshot.huge_bytes),
                kib(snapshot.huge_free_bytes)
            ),
        ),
        fact("the kernel's own counter (VmRSS)", format!("{} KiB", kib(snapshot.vm_rss_bytes))),
    ];
    if let Some(census) = snapshot.census {
        let source = match census.source {
            Source::Control => "the manager's census",
            Source::Mallinfo => "glibc's mallinfo2",
        };
        let exact = if census.exact { "" } else { ", counted while threads ran" };
        facts.push(fact(
            source,
            format!(
                "mapped {}, in use {}, free {}, metadata {}, quarantined {}, never carved {} KiB{exact}",
                kib(census.mapped_bytes),
                kib(census.live_bytes),
                kib(census.free_bytes),
                kib(census.metadata_bytes),
                kib(census.quarantined_bytes),
                kib(census.unused_bytes)
            ),
        ));
    }
    facts
}

#[cfg(test)]
mod tests;
