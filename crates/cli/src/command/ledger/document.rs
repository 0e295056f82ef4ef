//! The ledger in words, tables and a picture.

use heaptoll_ledger::{Amount, How, Ledger, Moment, Point, Source, Term};
use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, count, mib_from_bytes, plural, seconds};

/// Rows of the table over time, at most.
const ROWS: usize = 12;

/// A term of the sum, and the lines that it has.
struct Group {
    name: &'static str,
    terms: &'static [Term],
    /// Shown also when it is nothing.
    always: bool,
}

/// The sum, from its beginning to its end; in the picture from the bottom.
const GROUPS: [Group; 8] = [
    Group { name: "live, as asked for", terms: &[Term::Live], always: true },
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
        Term::Live => "asked for",
        Term::Internal => "given and not asked for",
        Term::External => "free, on pages with live blocks",
        Term::Caches => "pages without a live block",
        Term::Fresh => "pages of the heap where no block was seen",
        Term::Quarantine => "quarantine",
        Term::Unused => "never carved: the step of growth",
        Term::Blacklisted => "never carved: black-listed",
        Term::Metadata => "metadata",
        Term::Dead => "not told apart",
        Term::Headroom => "headroom: a collection reclaims it",
        Term::Held => "held by words that lead there",
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
    fn amount(&self, moment: &Moment) -> Amount {
        self.terms.iter().fold(Amount::default(), |sum, &term| sum + moment.amount(term))
    }
}

/// The document of a ledger that has moments.
pub fn document(ledger: &Ledger, subject: &str) -> Document {
    let mut document = Document {
        title: "Where the memory is".into(),
        subtitle: format!("{subject}, under {}", ledger.manager),
        ..Document::default()
    };
    let (Some(peak), Some(fullest)) = (ledger.peak(), ledger.fullest()) else { return document };
    let moments = &ledger.moments;
    let top = &moments[peak];
    document.warnings = warnings(ledger);
    document.sections.push(Section {
        title: "At the peak".into(),
        text: std::iter::once(headline(top)).chain(huge(top)).collect(),
        items: vec![Item::Table(sum(top))],
    });
    let named = named([(fullest, "most live"), (peak, "peak"), (moments.len() - 1, "last")]);
    if named.len() > 1 {
        document.sections.push(Section {
            title: "Then and at other moments".into(),
            text: Vec::new(),
            items: vec![Item::Table(side_by_side(moments, &named))],
        });
    }
    document.sections.push(Section {
        title: "Over time".into(),
        text: Vec::new(),
        items: vec![Item::Table(over_time(ledger, peak)), Item::Chart(picture(moments))],
    });
    if ledger.collector {
        document.sections.push(collector(ledger, top));
    }
    document.facts = facts(ledger, top);
    document
}

/// The document of a trace that has samples only.
pub fn coarse(points: &[Point], manager: &str, subject: &str) -> Document {
    let mut document = Document {
        title: "Where the memory is".into(),
        subtitle: format!("{subject}, under {manager}"),
        warnings: vec![
            "This trace was recorded without --ledger, so nobody looked at the pages of the process: what is resident of \
             the live blocks is not known, and the rest of the resident set is not told apart. `heaptoll record --ledger` \
             or `heaptoll ledger -- COMMAND` tell all."
                .into(),
        ],
        ..Document::default()
    };
    let Some(peak) = points.iter().max_by_key(|point| point.rss_bytes) else { return document };
    let shown = spread(points.len(), points.iter().position(|point| point == peak));
    let titles = ["Time s", "Resident KiB", "Live KiB", "Internal KiB", "Rest KiB"];
    let rows = shown.iter().map(|&at| {
        let point = &points[at];
        let rest = match point.rest_bytes() {
            rest if rest >= 0 => kib(rest as u64),
            // More is live than is resident.
            _ => NONE.into(),
        };
        vec![
            seconds(point.time_ns as f64 / 1e9),
            kib(point.rss_bytes),
            kib(point.live_bytes),
            kib(point.internal_bytes),
            rest,
        ]
    });
    let table = Table {
        columns: titles.iter().map(|&title| figures(title)).collect(),
        rows: rows.collect(),
        notes: vec![
            "Live: asked for and not freed, resident or not. Internal: given for it and not asked for. Rest: the resident \
             set less both; fragmentation, caches, metadata, code, stacks and the recorder's own rings are in it."
                .into(),
            "– where more is live than is resident: the program has not touched all that it asked for.".into(),
        ],
        ..Table::default()
    };
    let over = |value: fn(&Point) -> f64| {
        points.iter().map(|point| (point.time_ns as f64 / 1e9, value(point) / MIB)).collect()
    };
    let chart = Chart {
        title: "Resident and live bytes".into(),
        caption: "Live bytes need not be resident.".into(),
        form: Form::Lines,
        x: axis("time s"),
        y: axis("MiB"),
        series: vec![
            Series { name: "resident".into(), points: over(|point| point.rss_bytes as f64) },
            Series { name: "live".into(), points: over(|point| point.live_bytes as f64) },
            Series {
                name: "live and internal".into(),
                points: over(|point| (point.live_bytes + point.internal_bytes) as f64),
            },
        ],
    };
    document.sections.push(Section {
        title: "Over time".into(),
        text: vec![format!(
            "At its peak the process had {} MiB in memory, while {} MiB were live.",
            mib_from_bytes(peak.rss_bytes as f64),
            mib_from_bytes(peak.live_bytes as f64)
        )],
        items: vec![Item::Table(table), Item::Chart(chart)],
    });
    document
}

const MIB: f64 = 1024.0 * 1024.0;

fn kib(bytes: u64) -> String {
    count(bytes as f64 / 1024.0)
}

fn figures(title: &str) -> Column {
    Column { title: title.into(), figures: true }
}

fn words(title: &str) -> Column {
    Column { title: title.into(), figures: false }
}

fn axis(title: &str) -> Axis {
    Axis { title: title.into(), ..Axis::default() }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.into() } else { format!("{:.1}", part as f64 * 100.0 / whole as f64) }
}

fn headline(moment: &Moment) -> String {
    let mut parts: Vec<(u64, &str)> = GROUPS
        .iter()
        .map(|group| (group.amount(moment).resident, group.name))
        .filter(|(bytes, _)| *bytes > 0)
        .collect();
    parts.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    let shares =
        parts.iter().take(4).map(|(bytes, name)| format!("{name} {} %", percent(*bytes, moment.rss_bytes)));
    format!(
        "After {} s the process had {} MiB in memory: {}.",
        seconds(moment.time_ns as f64 / 1e9),
        mib_from_bytes(moment.rss_bytes as f64),
        shares.collect::<Vec<_>>().join(", ")
    )
}

/// What huge pages keep in memory, where it is worth a sentence: a twentieth of the resident set.
fn huge(moment: &Moment) -> Option<String> {
    let free = moment.huge_free_bytes;
    (free > 0 && free >= moment.rss_bytes / 20).then(|| {
        format!(
            "{} MiB of it hold no live block and lie on huge pages: they are resident as parts of those, whether the \
             program has ever used them or not.",
            mib_from_bytes(free as f64)
        )
    })
}

/// Resident KiB of each line, rounded so that they make the sum: what has lost most is rounded up.
fn rounded(moment: &Moment) -> Vec<(Term, u64)> {
    let mut lines: Vec<(Term, u64, u64)> = moment
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

/// The sum at one moment.
fn sum(moment: &Moment) -> Table {
    let rounded = rounded(moment);
    let resident = |terms: &[Term]| -> u64 {
        rounded.iter().filter(|(term, _)| terms.contains(term)).map(|&(_, kib)| kib).sum()
    };
    let swapped = moment.sum().swapped > 0;
    let row = |name: String, terms: &[Term], amount: Amount, how: &str| {
        let mut cells = vec![name, count(resident(terms) as f64), percent(amount.resident, moment.rss_bytes)];
        if swapped {
            cells.push(kib(amount.swapped));
        }
        cells.extend([kib(amount.absent), how.into()]);
        cells
    };
    let mut rows = Vec::new();
    for group in &GROUPS {
        let lines: Vec<_> = moment.lines.iter().filter(|line| group.terms.contains(&line.term)).collect();
        if lines.is_empty() && !group.always {
            continue;
        }
        // A single line speaks for its group.
        let alone = group.terms.len() == 1 || lines.is_empty();
        let how = if alone { lines.first().map_or("", |line| how(line.how)) } else { "" };
        rows.push(row(group.name.into(), group.terms, group.amount(moment), how));
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
    if moment.difference_bytes != 0 {
        let mut cells = vec!["pages that came or went meanwhile".to_owned()];
        cells.push(count(moment.difference_bytes as f64 / 1024.0));
        cells.resize(if swapped { 6 } else { 5 }, String::new());
        rows.push(cells);
    }
    let all = moment.sum();
    let mut total = vec!["resident set".to_owned(), kib(moment.rss_bytes), percent(1, 1)];
    if swapped {
        total.push(kib(all.swapped));
    }
    total.extend([kib(all.absent), String::new()]);
    rows.push(total);
    let mut columns = vec![words("Where"), figures("Resident KiB"), figures("% of RSS")];
    if swapped {
        columns.push(figures("Swapped KiB"));
    }
    columns.extend([figures("Not resident KiB"), words("Known by")]);
    let mut notes = vec![
        "Not resident: mapped, and without a page: never touched, or given back.".to_owned(),
        "Pages: counted byte by byte from the live blocks and the pages of the process. Its word: the manager's own \
         figure, and what is left beside it; of which as much is resident as of the memory it lies in."
            .into(),
    ];
    if moment.no_pagemap.is_some() {
        notes.push("Estimate: from the resident bytes of each mapping, live blocks first.".into());
    }
    Table { caption: String::new(), columns, rows, notes }
}

fn how(how: How) -> &'static str {
    match how {
        How::Counted => "pages",
        How::Told => "its word",
        How::Estimated => "estimate",
    }
}

/// Moments by number, each with all its names.
fn named(moments: [(usize, &str); 3]) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    for (at, name) in moments {
        match all.iter_mut().find(|(known, _)| *known == at) {
            Some((_, names)) => *names = format!("{names}, {name}"),
            None => all.push((at, name.into())),
        }
    }
    all.sort_by_key(|&(at, _)| at);
    all
}

fn side_by_side(moments: &[Moment], named: &[(usize, String)]) -> Table {
    let mut columns = vec![words("Resident KiB")];
    columns.extend(named.iter().map(|(_, name)| figures(name)));
    let row = |name: &str, value: &dyn Fn(&Moment) -> String| {
        let cells = named.iter().map(|&(at, _)| value(&moments[at]));
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![row("after s", &|moment| seconds(moment.time_ns as f64 / 1e9))];
    for group in shown(moments) {
        rows.push(row(group.name, &|moment| kib(group.amount(moment).resident)));
    }
    rows.push(row("resident set", &|moment| kib(moment.rss_bytes)));
    rows.push(row("live blocks", &|moment| count(moment.live_blocks as f64)));
    rows.push(row("asked for in them, resident or not", &|moment| kib(moment.live_bytes)));
    Table { columns, rows, ..Table::default() }
}

/// Groups that have something at any moment, and those always shown.
fn shown(moments: &[Moment]) -> impl Iterator<Item = &'static Group> {
    GROUPS
        .iter()
        .filter(|group| group.always || moments.iter().any(|moment| group.amount(moment).total() > 0))
}

/// Numbers of at most [`ROWS`] of `many`, evenly, one of them `also`, and the last.
fn spread(many: usize, also: Option<usize>) -> Vec<usize> {
    let rows = ROWS.min(many);
    let mut all: Vec<usize> =
        (0..rows).map(|row| if rows > 1 { row * (many - 1) / (rows - 1) } else { 0 }).collect();
    all.extend(also);
    all.sort_unstable();
    all.dedup();
    all
}

fn over_time(ledger: &Ledger, peak: usize) -> Table {
    let moments = &ledger.moments;
    let groups: Vec<&Group> = shown(moments).collect();
    let mut columns = vec![figures("Time s"), figures("RSS KiB")];
    columns.extend(groups.iter().map(|group| figures(group.name)));
    let rows = spread(moments.len(), Some(peak)).into_iter().map(|at| {
        let moment = &moments[at];
        let mut cells = vec![seconds(moment.time_ns as f64 / 1e9), kib(moment.rss_bytes)];
        cells.extend(groups.iter().map(|group| kib(group.amount(moment).resident)));
        cells
    });
    let notes = vec![format!(
        "Resident KiB; {} of {}.",
        spread(moments.len(), Some(peak)).len(),
        plural(moments.len(), "moment")
    )];
    Table { columns, rows: rows.collect(), notes, ..Table::default() }
}

fn picture(moments: &[Moment]) -> Chart {
    let series = shown(moments).map(|group| Series {
        name: group.name.into(),
        points: moments
            .iter()
            .map(|moment| (moment.time_ns as f64 / 1e9, group.amount(moment).resident as f64 / MIB))
            .collect(),
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

/// What Detlefs, Dosser and Zorn could not tell apart of a collector's memory.
fn collector(ledger: &Ledger, peak: &Moment) -> Section {
    let told = |moment: &&Moment| moment.census.is_some_and(|census| census.source == Source::Control);
    // A program that makes no call while it is looked at has nobody ask its manager.
    let moment = Some(peak).filter(told);
    let moment = moment.or(ledger.moments.iter().filter(told).max_by_key(|moment| moment.rss_bytes));
    let (moment, census) = moment.map_or((peak, None), |moment| (moment, moment.census));
    let measured = census.is_some_and(|census| census.live_after_collection_bytes.is_some());
    let mut text = Vec::new();
    if census.is_none() {
        text.push(
            "The manager told nothing of its heap (it has no control symbol, include/heaptoll.h, or the program made no \
             call while it was looked at): what the program freed and the collector has not reclaimed is among the free \
             bytes of the heap, and is not told apart."
                .to_owned(),
        );
    } else {
        if !std::ptr::eq(moment, peak) {
            text.push(format!(
                "At {} s, when {} MiB were resident: at the peak the program made no call, and its manager was not asked.",
                seconds(moment.time_ns as f64 / 1e9),
                mib_from_bytes(moment.rss_bytes as f64)
            ));
        }
        if !measured {
            text.push(
                "What a collection would reclaim at this moment is not known: none was forced, as it would have changed \
                 the run."
                    .to_owned(),
            );
        }
    }
    let row = |source: &str, term: Option<Term>, known: &str| {
        let amount = term.map(|term| moment.amount(term));
        let cell = |value: fn(Amount) -> u64| amount.map_or(NONE.into(), |amount| kib(value(amount)));
        vec![
            source.to_owned(),
            cell(|amount| amount.resident),
            cell(|amount| amount.total()),
            known.to_owned(),
        ]
    };
    let after = |term| measured.then_some(term);
    let known = |term| census.is_some().then_some(term);
    let black = census.and_then(|census| census.blacklisted_bytes).map(|_| Term::Blacklisted);
    let rows = vec![
        row(
            "headroom between collections",
            after(Term::Headroom),
            "live for the manager before a forced collection, less after it",
        ),
        row(
            "held by ambiguous words, or freed and still reachable",
            after(Term::Held),
            "live for the manager after it, less live in the record",
        ),
        row(
            "dead, not told apart",
            known(Term::Dead).filter(|_| !measured),
            "live for the manager, less live in the record",
        ),
        row("expansion granularity", known(Term::Unused), "the manager's census: mapped, never carved"),
        row("black-listed", black, "the manager's own count"),
    ];
    let mut notes = vec![
        "A word that leads to a freed block may be an address that the program has kept, or a number that looks like one. \
         Without the types of the program's data nobody can tell these apart."
            .to_owned(),
    ];
    if let Some(held) = census.and_then(|census| census.held) {
        notes.push(format!(
            "Of all that the collector keeps, live or dead, words of stacks alone hold {} KiB, static data {} KiB, other \
             mappings {} KiB, registers {} KiB (tithe_held).",
            kib(held.stacks),
            kib(held.statics),
            kib(held.mappings),
            kib(held.registers)
        ));
    }
    let columns = vec![words("Source"), figures("Resident KiB"), figures("KiB"), words("Known by")];
    let table = Table { caption: String::new(), columns, rows, notes };
    let title = format!("What {} keeps beyond what is live", ledger.manager);
    Section { title, text, items: vec![Item::Table(table)] }
}

fn warnings(ledger: &Ledger) -> Vec<String> {
    let moments = &ledger.moments;
    let mut warnings = Vec::new();
    if ledger.collected {
        warnings
            .push("A collection was forced at every moment: the run is not what it would have been.".into());
    }
    if let Some(why) = moments.iter().find_map(|moment| moment.no_pagemap.as_ref()) {
        warnings.push(format!(
            "The pages of the process could not be read ({why}): which parts of the heap are resident is estimated."
        ));
    }
    if let Some(moment) = moments.iter().max_by_key(|moment| moment.defects.unmapped_blocks)
        && moment.defects.unmapped_blocks > 0
    {
        warnings.push(format!(
            "At {} s, {} ({} bytes) of the record lay where nothing is mapped, the first at {:#x}: the program gave \
             them back past the recorder, or the manager handed out what it does not have.",
            seconds(moment.time_ns as f64 / 1e9),
            plural(moment.defects.unmapped_blocks as usize, "live block"),
            count(moment.defects.unmapped_bytes as f64),
            moment.defects.unmapped_address
        ));
    }
    if let Some(moment) = moments.iter().max_by_key(|moment| moment.defects.overlapping_blocks)
        && moment.defects.overlapping_blocks > 0
    {
        warnings.push(format!(
            "At {} s, {} overlapped others by {} bytes, which count once.",
            seconds(moment.time_ns as f64 / 1e9),
            plural(moment.defects.overlapping_blocks as usize, "live block"),
            count(moment.defects.overlapping_bytes as f64)
        ));
    }
    if let Some(broken) = moments.iter().find(|moment| !moment.closes()) {
        warnings.push(format!(
            "The lines of the moment at {} s do not sum up to its resident set: the file was changed.",
            seconds(broken.time_ns as f64 / 1e9)
        ));
    }
    warnings
}

fn facts(ledger: &Ledger, moment: &Moment) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let took = ledger.moments.iter().map(|moment| moment.took_ns).max().unwrap_or_default();
    let mut facts = vec![
        fact("manager", ledger.manager.clone()),
        fact(
            "moments",
            format!("{}, the longest look took {:.1} ms", ledger.moments.len(), took as f64 / 1e6),
        ),
        fact("live blocks at the peak", count(moment.live_blocks as f64)),
        fact(
            "address space of the heap",
            format!("{} KiB in {}", kib(moment.heap_bytes), plural(moment.heap_places as usize, "place")),
        ),
        fact("kept for later, without access", format!("{} KiB", kib(moment.reserved_bytes))),
        fact(
            "on huge pages",
            format!(
                "{} KiB, {} KiB of it without a live block",
                kib(moment.huge_bytes),
                kib(moment.huge_free_bytes)
            ),
        ),
        fact("the kernel's own counter (VmRSS)", format!("{} KiB", kib(moment.vm_rss_bytes))),
    ];
    if let Some(census) = moment.census {
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
mod tests {
    use heaptoll_ledger::Line;

    use super::*;

    fn moment(time_ns: u64, resident: &[(Term, u64)]) -> Moment {
        let lines: Vec<Line> = resident
            .iter()
            .map(|&(term, resident)| Line {
                term,
                amount: Amount { resident, swapped: 0, absent: 1024 },
                how: How::Counted,
            })
            .collect();
        let rss_bytes = resident.iter().map(|(_, bytes)| bytes).sum();
        Moment { time_ns, rss_bytes, live_bytes: resident[0].1, lines, ..Moment::default() }
    }

    fn cells(document: &Document, section: usize) -> Vec<Vec<String>> {
        let Item::Table(table) = &document.sections[section].items[0] else { panic!("no table") };
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
        table.rows.clone()
    }

    #[test]
    fn the_rows_of_the_sum_make_the_resident_set() {
        // 1.5 KiB, 0.75 and 0.75, 1 KiB: 4 KiB in all.
        let lines = [(Term::Live, 1536), (Term::Internal, 768), (Term::Stacks, 768), (Term::Code, 1024)];
        let ledger = Ledger { moments: vec![moment(1, &lines)], ..Ledger::default() };
        let rows = cells(&document(&ledger, "a program"), 0);
        let groups: Vec<&Vec<String>> = rows.iter().filter(|row| !row[0].starts_with('·')).collect();
        let figure = |row: &Vec<String>| row[1].parse::<u64>().expect("a figure");
        let (total, parts) = groups.split_last().expect("rows");
        assert_eq!((total[0].as_str(), figure(total)), ("resident set", 4));
        assert_eq!(parts.iter().map(|row| figure(row)).sum::<u64>(), 4, "{rows:?}");
        // Lines below their group.
        assert!(
            rows.iter().any(|row| row[0] == "· stacks") && !rows.iter().any(|row| row[0] == "· asked for")
        );
    }

    #[test]
    fn every_term_has_its_place_in_the_sum() {
        for term in heaptoll_ledger::TERMS {
            assert_eq!(GROUPS.iter().filter(|group| group.terms.contains(&term)).count(), 1, "{term:?}");
        }
    }

    #[test]
    fn huge_pages_without_blocks_get_a_sentence() {
        let mut only = moment(1, &[(Term::Live, 4096)]);
        assert_eq!(huge(&only), None);
        only.huge_free_bytes = 1024;
        assert!(huge(&only).is_some_and(|text| text.contains("huge pages")));
        only.rss_bytes = 1 << 20;
        assert_eq!(huge(&only), None);
    }

    #[test]
    fn moments_that_are_one_are_shown_once() {
        let low = moment(1, &[(Term::Live, 4096)]);
        let high = moment(2, &[(Term::Live, 8192)]);
        let last = moment(3, &[(Term::Live, 4096), (Term::Caches, 2048)]);
        let ledger = Ledger { moments: vec![low, high, last], ..Ledger::default() };
        let rows = cells(&document(&ledger, "a program"), 1);
        assert_eq!(rows[0].len(), 3, "{rows:?}");
        let Item::Chart(chart) = &document(&ledger, "a program").sections[2].items[1] else {
            panic!("no chart")
        };
        assert!(chart.series.iter().all(|series| series.points.len() == 3));
        assert_eq!(chart.form, Form::Stacked);
    }

    #[test]
    fn what_is_wrong_is_said_first() {
        let mut bad = moment(1, &[(Term::Live, 4096)]);
        bad.defects.unmapped_blocks = 2;
        bad.no_pagemap = Some("Permission denied".into());
        bad.rss_bytes += 1;
        let ledger = Ledger { moments: vec![bad], collected: true, ..Ledger::default() };
        assert_eq!(document(&ledger, "a program").warnings.len(), 4);
    }

    #[test]
    fn a_collectors_sources_are_told_apart_or_said_not_to_be() {
        let mut ledger = Ledger {
            manager: "tithe".into(),
            collector: true,
            moments: vec![moment(1, &[(Term::Live, 4096), (Term::Headroom, 1024)])],
            ..Ledger::default()
        };
        let rows = |ledger: &Ledger| {
            let document = document(ledger, "a program");
            let at = document.sections.len() - 1;
            (document.sections[at].text.len(), cells(&document, at))
        };
        let (words, table) = rows(&ledger);
        assert_eq!(words, 1);
        assert!(table.iter().all(|row| row[1] == NONE));
        ledger.moments[0].census = Some(heaptoll_ledger::Census {
            live_after_collection_bytes: Some(1),
            ..heaptoll_ledger::Census::default()
        });
        let (words, table) = rows(&ledger);
        assert_eq!((words, table[0][1].as_str(), table[0][2].as_str()), (0, "1", "2"));
        // At the peak nobody was asked: another moment is shown.
        ledger.moments.push(moment(2, &[(Term::Live, 9999)]));
        let (words, table) = rows(&ledger);
        assert_eq!((words, table[0][1].as_str()), (1, "1"));
    }

    #[test]
    fn rows_over_time_hold_the_peak_and_the_ends() {
        assert_eq!(spread(3, Some(1)), [0, 1, 2]);
        assert_eq!(spread(1, None), [0]);
        let many = spread(1000, Some(501));
        assert_eq!((many.len(), many[0], many[12]), (13, 0, 999));
        assert!(many.contains(&501));
    }
}
