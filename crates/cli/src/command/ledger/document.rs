//! The document of the ledger: sentences, tables and a chart.

use heaptoll_ledger::{Amount, How, Ledger, Snapshot, Source, Term};
use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, count, mib_from_bytes, plural, seconds};

use super::collector::collector;

/// Rows of the table over time, at most.
const ROWS: usize = 12;

/// A term of the sum, and the lines that it has.
struct Group {
    name: &'static str,
    terms: &'static [Term],
    /// Shown also when it is zero.
    always: bool,
}

/// The groups of the sum, in order; in the chart from the bottom.
const GROUPS: [Group; 8] = [
    Group { name: "live, as requested", terms: &[Term::Live], always: true },
    Group { name: "internal fragmentation", terms: &[Term::Internal], always: true },
    Group { name: "external fragmentation", terms: &[Term::External], always: true },
    Group {
        name: "caches and quarantine",
        terms: &[Term::Caches, Term::Quarantine, Term::Unused, Term::Blacklisted, Term::Fresh],
        always: true,
    },
    Group { name: "metadata", terms: &[Term::Metadata], always: true },
    Group { name: "dead but not reclaimed", terms: &[Term::Headroom, Term::Held, Term::Dead], always: false },
    Group { name: "live, not in the record", terms: &[Term::Unrecorded], always: false },
    Group {
        name: "not heap",
        terms: &[
            Term::Code,
            Term::StaticData,
            Term::Stacks,
            Term::Shared,
            Term::Recorder,
            Term::Kernel,
            Term::OtherAnonymous,
        ],
        always: true,
    },
];

/// A line's name below its group's.
fn name(term: Term) -> &'static str {
    match term {
        Term::Live => "requested",
        Term::Internal => "in the block and not requested",
        Term::External => "free, on pages with live blocks",
        Term::Caches => "pages without a live block",
        Term::Fresh => "pages of the heap where no block was seen",
        Term::Quarantine => "quarantine",
        Term::Unused => "never carved: the step of growth",
        Term::Blacklisted => "never carved: black-listed",
        Term::Metadata => "metadata",
        Term::Dead => "not split",
        Term::Headroom => "headroom: a collection reclaims it",
        Term::Held => "held by words that point there",
        Term::Unrecorded => "not in the record",
        Term::Code => "code and constants",
        Term::StaticData => "static data",
        Term::Stacks => "stacks",
        Term::Shared => "shared memory and files",
        Term::Recorder => "the recorder's own rings",
        Term::Kernel => "the kernel's pages",
        Term::OtherAnonymous => "other anonymous memory",
    }
}

impl Group {
    fn amount(&self, snapshot: &Snapshot) -> Amount {
        self.terms.iter().fold(Amount::default(), |sum, &term| sum + snapshot.amount(term))
    }
}

/// The document of a ledger that has snapshots.
pub fn document(ledger: &Ledger, subject: &str) -> Document {
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
        title: "At the peak".into(),
        text: std::iter::once(headline(top)).chain(huge(top)).collect(),
        items: vec![Item::Table(sum(top))],
    });
    let fullest_name = format!("most live of {}", plural(snapshots.len(), "snapshot"));
    let named = named([(fullest, &fullest_name), (peak, "peak"), (snapshots.len() - 1, "last")]);
    if named.len() > 1 {
        document.sections.push(Section {
            title: "The peak and other snapshots".into(),
            text: Vec::new(),
            items: vec![Item::Table(side_by_side(snapshots, &named))],
        });
    }
    document.sections.push(Section {
        title: "Over time".into(),
        text: Vec::new(),
        items: vec![Item::Table(over_time(ledger, peak)), Item::Chart(picture(snapshots))],
    });
    if ledger.collector {
        document.sections.push(collector(ledger, top));
    }
    document.facts = facts(ledger, top);
    document
}

/// The most live bytes of the whole run, which a trace has exactly, compared with the most of any snapshot.
pub fn most_live(ledger: &Ledger, max_live_bytes: Option<u64>) -> Option<String> {
    let mib = |bytes: u64| mib_from_bytes(bytes as f64);
    let count_text = plural(ledger.snapshots.len(), "snapshot");
    let seen = ledger.snapshots.get(ledger.fullest()?)?.live_bytes;
    Some(match max_live_bytes {
        Some(most) => format!(
            "At most {} MiB were live in the whole run, and {} MiB in the fullest of the {count_text}.",
            mib(most.max(seen)),
            mib(seen)
        ),
        None => format!(
            "{} MiB were live in the fullest of the {count_text}; how much more was between them is not known.",
            mib(seen)
        ),
    })
}

pub(super) const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn kib(bytes: u64) -> String {
    count(bytes as f64 / 1024.0)
}

pub(super) fn axis(title: &str) -> Axis {
    Axis { title: title.into(), ..Axis::default() }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.into() } else { format!("{:.1}", part as f64 * 100.0 / whole as f64) }
}

fn headline(snapshot: &Snapshot) -> String {
    let mut parts: Vec<(u64, &str)> = GROUPS
        .iter()
        .map(|group| (group.amount(snapshot).resident, group.name))
        .filter(|(bytes, _)| *bytes > 0)
        .collect();
    parts.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    let shares =
        parts.iter().take(4).map(|(bytes, name)| format!("{name} {} %", percent(*bytes, snapshot.rss_bytes)));
    format!(
        "After {} s the process had {} MiB in memory: {}.",
        seconds(snapshot.time_ns as f64 / 1e9),
        mib_from_bytes(snapshot.rss_bytes as f64),
        shares.collect::<Vec<_>>().join(", ")
    )
}

/// A sentence on what huge pages keep in memory, where it is at least a twentieth of the resident set.
fn huge(snapshot: &Snapshot) -> Option<String> {
    let free = snapshot.huge_free_bytes;
    (free > 0 && free >= snapshot.rss_bytes / 20).then(|| {
        format!(
            "{} MiB of it hold no live block and lie on huge pages: they are resident as parts of those, whether the \
             program has ever used them or not.",
            mib_from_bytes(free as f64)
        )
    })
}

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
fn sum(snapshot: &Snapshot) -> Table {
    let rounded = rounded(snapshot);
    let resident = |terms: &[Term]| -> u64 {
        rounded.iter().filter(|(term, _)| terms.contains(term)).map(|&(_, kib)| kib).sum()
    };
    let swapped = snapshot.sum().swapped > 0;
    let row = |name: String, terms: &[Term], amount: Amount, how: &str| {
        let mut cells =
            vec![name, count(resident(terms) as f64), percent(amount.resident, snapshot.rss_bytes)];
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
                    format!("· {}", name(line.term)),
                    &[line.term],
                    line.amount,
                    self::how(line.how),
                ));
            }
        }
    }
    if snapshot.difference_bytes != 0 {
        let mut cells = vec!["pages that came or went meanwhile".to_owned()];
        cells.push(count(snapshot.difference_bytes as f64 / 1024.0));
        cells.resize(if swapped { 6 } else { 5 }, String::new());
        rows.push(cells);
    }
    let all = snapshot.sum();
    let mut total = vec!["resident set".to_owned(), kib(snapshot.rss_bytes), percent(1, 1)];
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
    columns.extend([Column::figures("Not resident KiB"), Column::text("Known by")]);
    let mut notes = vec![
        "Not resident: mapped, and without a page: never touched, or given back.".to_owned(),
        "Pages: counted byte by byte from the live blocks and the pages of the process. Reported: the manager's own \
        figure, and the rest beyond it; taken as resident in the proportion of the memory it lies in."
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
    let mut columns = vec![Column::text("Resident KiB")];
    columns.extend(named.iter().map(|(_, name)| Column::figures(name)));
    let row = |name: &str, value: &dyn Fn(&Snapshot) -> String| {
        let cells = named.iter().map(|&(at, _)| value(&snapshots[at]));
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![row("after s", &|snapshot| seconds(snapshot.time_ns as f64 / 1e9))];
    for group in shown(snapshots) {
        rows.push(row(group.name, &|snapshot| kib(group.amount(snapshot).resident)));
    }
    rows.push(row("resident set", &|snapshot| kib(snapshot.rss_bytes)));
    rows.push(row("live blocks", &|snapshot| count(snapshot.live_blocks as f64)));
    rows.push(row("requested in them, resident or not", &|snapshot| kib(snapshot.live_bytes)));
    Table { columns, rows, ..Table::default() }
}

/// Groups that are not zero in every snapshot, and those always shown.
fn shown(snapshots: &[Snapshot]) -> impl Iterator<Item = &'static Group> {
    GROUPS
        .iter()
        .filter(|group| group.always || snapshots.iter().any(|snapshot| group.amount(snapshot).total() > 0))
}

/// Numbers of at most [`ROWS`] of `many`, evenly, one of them `also`, and the last.
pub(super) fn spread(many: usize, also: Option<usize>) -> Vec<usize> {
    let rows = ROWS.min(many);
    let mut all: Vec<usize> =
        (0..rows).map(|row| if rows > 1 { row * (many - 1) / (rows - 1) } else { 0 }).collect();
    all.extend(also);
    all.sort_unstable();
    all.dedup();
    all
}

fn over_time(ledger: &Ledger, peak: usize) -> Table {
    let snapshots = &ledger.snapshots;
    let groups: Vec<&Group> = shown(snapshots).collect();
    let mut columns = vec![Column::figures("Time s"), Column::figures("RSS KiB")];
    columns.extend(groups.iter().map(|group| Column::figures(group.name)));
    let rows = spread(snapshots.len(), Some(peak)).into_iter().map(|at| {
        let snapshot = &snapshots[at];
        let mut cells = vec![seconds(snapshot.time_ns as f64 / 1e9), kib(snapshot.rss_bytes)];
        cells.extend(groups.iter().map(|group| kib(group.amount(snapshot).resident)));
        cells
    });
    let notes = vec![format!(
        "Resident KiB; {} of {}.",
        spread(snapshots.len(), Some(peak)).len(),
        plural(snapshots.len(), "snapshot")
    )];
    Table { columns, rows: rows.collect(), notes, ..Table::default() }
}

fn picture(snapshots: &[Snapshot]) -> Chart {
    let series = shown(snapshots).map(|group| Series {
        name: group.name.into(),
        points: snapshots
            .iter()
            .map(|snapshot| (snapshot.time_ns as f64 / 1e9, group.amount(snapshot).resident as f64 / MIB))
            .collect(),
        ..Series::default()
    });
    Chart {
        title: "Resident memory over time".into(),
        caption: "The areas on top of each other are the resident set.".into(),
        form: Form::Stacked,
        x: axis("time s"),
        y: axis("resident MiB"),
        series: series.collect(),
    }
}

fn warnings(ledger: &Ledger) -> Vec<String> {
    let snapshots = &ledger.snapshots;
    let mut warnings = Vec::new();
    if ledger.collected {
        warnings.push(
            "A collection was forced at every snapshot: the run is not what it would have been.".into(),
        );
    }
    if let Some(why) = snapshots.iter().find_map(|snapshot| snapshot.no_pagemap.as_ref()) {
        warnings.push(format!(
            "The pages of the process could not be read ({why}): which parts of the heap are resident is estimated."
        ));
    }
    if let Some(snapshot) = snapshots.iter().max_by_key(|snapshot| snapshot.defects.unmapped_blocks)
        && snapshot.defects.unmapped_blocks > 0
    {
        warnings.push(format!(
            "At {} s, {} ({} bytes) of the record lay where nothing is mapped, the first at {:#x}: the program freed \
            them unseen by the recorder, or the manager handed out what it does not have.",
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
            "The lines of the snapshot at {} s do not sum up to its resident set: the file was changed.",
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
