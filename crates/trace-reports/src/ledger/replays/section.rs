//! The section on other managers: what each of them holds of the same program.

use heaptoll_ledger::{Pins, Snapshot, Term};
use heaptoll_replay::job::Touch;
use heaptoll_report::document::{Axis, Chart, Column, Form, Item, Section, Series, Table};
use heaptoll_report::format::seconds;
use heaptoll_trace::Sites;
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::{MIB, kib, number, per_hundred, whole_bytes};

use super::super::figures::{ReplayedManager, Replays};
use super::super::groups::GROUPS;
use super::super::pin_rows::{Row, rows};
use super::empty;

/// Call sites with a column of their own.
const SITES: usize = 3;

/// What is known of the recorded run.
pub struct Recorded<'a> {
    /// Its manager.
    pub manager: &'a str,
    /// Its snapshots; none of a coarse ledger.
    pub snapshots: &'a [Snapshot],
    /// Its call sites.
    pub sites: &'a Sites,
}

/// The section.
pub fn section(replays: &Replays, recorded: &Recorded) -> Section {
    let mut call_sites = CallSites::new(recorded.sites, heaptoll_callsites::FRAMES);
    let at_point = replays.recorded.and_then(|at| recorded.snapshots.get(at));
    let recorded_pins = at_point.and_then(|snapshot| snapshot.pins.as_ref());
    let all: Vec<&Pins> = recorded_pins
        .into_iter()
        .chain(replays.managers.iter().filter_map(|one| one.pins.as_ref()))
        .collect();
    for pin in all.iter().flat_map(|pins| &pins.sites) {
        call_sites.row(pin.site);
    }
    // The columns are the call sites that hold most in the recorded run, or under the first manager.
    let first = all.first().map(|pins| rows(pins, &mut call_sites)).unwrap_or_default();
    let columns: Vec<&Row> = first.iter().filter(|row| row.pin.site != 0).take(SITES).collect();
    let line =
        at_point.zip(recorded_pins).map(|(snapshot, pins)| recorded_line(recorded.manager, snapshot, pins));
    let lines = line.into_iter().chain(replays.managers.iter().map(|one| line_of(one, replays.events)));
    let figure = |line: &Line, of: fn(&LineFigures) -> u64| line.figures.as_ref().map(|found| kib(of(found)));
    let table = Table::of(lines)
        .text("Manager", |line| line.manager.clone())
        .figure("Resident KiB", |line| figure(line, |found| found.resident))
        .figure("live KiB", |line| figure(line, |found| found.live))
        .figure("external KiB", |line| figure(line, |found| found.external))
        .figure("%", |line| line.figures.as_ref().map(|found| per_hundred(found.external, found.resident)))
        .figure("no live block KiB", |line| figure(line, |found| found.empty))
        .optional("most external KiB", |line| figure(line, |found| found.most))
        .each(
            &columns,
            |site| Column::figures(&format!("pinned by {}, KiB", innermost(&site.name))),
            |line, site| {
                line.figures.as_ref()?;
                line.pins.map(|pins| kib(held(pins, site, &mut call_sites)))
            },
        )
        .notes(notes(replays));
    let was = at_point.zip(recorded_pins).map(|(snapshot, _)| (recorded.manager, snapshot));
    let text = std::iter::once(introduction(replays, at_point))
        .chain(sentence(replays, columns.first().copied(), was, &mut call_sites))
        .collect();
    let failed =
        replays.managers.iter().filter_map(|one| Some(format!("{}: {}", one.name, one.failed.as_ref()?)));
    let failed: Vec<String> = failed.collect();
    let failed = (!failed.is_empty()).then_some(Item::Warnings(failed));
    let section = Section { text, ..Section::new("The same program under other managers") };
    section.with(table).with_all(chart(replays, recorded)).with_all(failed)
}

fn introduction(replays: &Replays, snapshot: Option<&Snapshot>) -> String {
    let when = match snapshot {
        Some(snapshot) => format!(
            "at the largest external fragmentation of the recorded run ({} s)",
            seconds(snapshot.time_ns as f64 / 1e9)
        ),
        None => "at the largest external fragmentation under the first of them".into(),
    };
    format!(
        "The calls of the trace, made again under each manager; after {} of them, {when}.",
        number(replays.events)
    )
}

/// Resident memory under each manager, least first, and what of it the call site that holds most when recorded pins.
fn sentence(
    replays: &Replays,
    worst: Option<&Row>,
    recorded: Option<(&str, &Snapshot)>,
    call_sites: &mut CallSites,
) -> Option<String> {
    let worst = worst?;
    let mut replayed: Vec<(u64, u64, u64, &str)> = replays
        .managers
        .iter()
        .filter_map(|one| {
            let (point, pins) = (one.at(replays.events)?, one.pins.as_ref()?);
            let free = point.empty_bytes.min(point.resident_bytes);
            Some((point.resident_bytes, held(pins, worst, call_sites), free, one.name.as_str()))
        })
        .collect();
    replayed.sort_unstable();
    let part = |(at, (resident, pinned, free, manager)): (usize, &(u64, u64, u64, &str))| {
        let [resident, pinned, free] = [resident, pinned, free].map(|bytes| whole_bytes(*bytes));
        match at {
            0 => format!(
                "{resident} under {manager} ({} pins {pinned}; {free} has no live block and could be given back)",
                worst.name
            ),
            _ => format!("{resident} under {manager} ({pinned}; {free})"),
        }
    };
    let parts: Vec<String> = replayed.iter().enumerate().map(part).collect();
    let was = recorded.map_or_else(String::new, |(manager, snapshot)| {
        let free = empty(snapshot).min(heap(snapshot));
        let [resident, pinned, free] = [heap(snapshot), worst.pin.bytes(), free].map(whole_bytes);
        format!("; {resident} under {manager} when recorded ({pinned}; {free})")
    });
    (!parts.is_empty()).then(|| format!("Resident memory: {}{was}.", parts.join(", ")))
}

/// Resident memory without what is not heap, bytes: what a replay would have.
fn heap(snapshot: &Snapshot) -> u64 {
    let not_heap: u64 = GROUPS
        .iter()
        .filter(|group| group.terms.contains(&Term::OtherAnonymous))
        .map(|group| group.amount(snapshot).resident)
        .sum();
    snapshot.rss_bytes.saturating_sub(not_heap)
}

/// Bytes that the call sites of a row hold.
fn held(pins: &Pins, row: &Row, call_sites: &mut CallSites) -> u64 {
    pins.sites.iter().filter(|pin| call_sites.row(pin.site) == row.row).map(|pin| pin.bytes()).sum()
}

/// The first frame of a call site.
fn innermost(name: &str) -> &str {
    name.split_once(" < ").map_or(name, |(first, _)| first)
}

/// A manager at the point.
struct Line<'a> {
    manager: String,
    /// None where its replay did not come to it.
    figures: Option<LineFigures>,
    pins: Option<&'a Pins>,
}

/// Bytes.
struct LineFigures {
    resident: u64,
    live: u64,
    external: u64,
    empty: u64,
    most: u64,
}

fn recorded_line<'a>(manager: &str, snapshot: &Snapshot, pins: &'a Pins) -> Line<'a> {
    let figures = LineFigures {
        resident: heap(snapshot),
        live: snapshot.live_bytes,
        external: pins.bytes,
        empty: empty(snapshot),
        most: pins.bytes,
    };
    Line { manager: format!("{manager}, as recorded"), figures: Some(figures), pins: Some(pins) }
}

fn line_of(manager: &ReplayedManager, events: u64) -> Line<'_> {
    let figures = manager.at(events).map(|point| LineFigures {
        resident: point.resident_bytes,
        live: point.live_bytes,
        external: point.external_bytes,
        empty: point.empty_bytes,
        most: manager.points.iter().map(|point| point.external_bytes).max().unwrap_or_default(),
    });
    Line { manager: manager.name.clone(), figures, pins: manager.pins.as_ref() }
}

fn notes(replays: &Replays) -> Vec<String> {
    let touched = match replays.touch {
        Touch::None => "No block was written: live blocks are resident only if the manager writes to them.",
        Touch::Write | Touch::All => {
            "Each block was written in full when it was allocated: what the program never touches of its \
             blocks is resident here."
        }
    };
    vec![
        "Resident: more than before the first call, without the driver's own memory; as recorded: without \
         memory that is not heap. External: free bytes on resident pages with live blocks; % of resident. No \
         live block: pages that could be given back, with those from before the first call. Most external: \
         at any sampled point. Pinned by: the part of external fragmentation of the call sites that pin most \
         when recorded."
            .into(),
        format!(
            "{touched} The calls are in the order of the recording, one at a time. Only calls take time, so \
             memory that a manager gives back after a delay is not given back here."
        ),
    ]
}

fn chart(replays: &Replays, recorded: &Recorded) -> Option<Item> {
    let mut series = Vec::new();
    let was: Vec<(f64, f64)> = recorded
        .snapshots
        .iter()
        .filter(|snapshot| snapshot.events > 0)
        .filter_map(|snapshot| Some((snapshot.events as f64, snapshot.pins.as_ref()?.bytes as f64 / MIB)))
        .collect();
    if !was.is_empty() {
        series.push(Series::of(format!("{}, as recorded", recorded.manager), was));
    }
    for manager in replays.managers.iter().filter(|manager| !manager.points.is_empty()) {
        let points =
            manager.points.iter().map(|point| (point.events as f64, point.external_bytes as f64 / MIB));
        series.push(Series::of(manager.name.clone(), points.collect()));
    }
    (!series.is_empty()).then(|| {
        Item::Chart(Chart {
            title: "External fragmentation over the trace".into(),
            caption: "At the recorded snapshots, or evenly over the trace if there are none.".into(),
            form: Form::Lines,
            x: Axis::even("events of the trace"),
            y: Axis::even("MiB"),
            series,
        })
    })
}
