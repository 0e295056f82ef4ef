//! Who pins the pages: the call sites whose live blocks keep pages resident that are otherwise free.

use std::collections::BTreeSet;

use heaptoll_ledger::{Ledger, Pin, Pins, STEP, Snapshot};
use heaptoll_profiles::{Builder, Frame, Measure};
use heaptoll_report::document::{Axis, Chart, Flame, Form, Item, Section, Series, Table};
use heaptoll_report::format::{count, plural, seconds};
use heaptoll_trace::Sites;
use heaptoll_trace_analysis::profile::Frames;
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::{MIB, kib, per_hundred, whole_bytes};

use super::around;
use super::figures::NamedSite;
use super::picture::mosaic;
use super::pin_rows::{self, Row, rows};

/// Rows of the table.
const ROWS: usize = 20;
/// Sites of the chart.
const SERIES: usize = 6;
/// Less than this part of the resident set, as a divisor, is not attributed.
const SHOWN: u64 = 100;
/// The document begins with the worst site where the free bytes on live pages are at least this part of the resident
/// set, as a divisor.
const NOTABLE: u64 = 20;
/// Fragmentation that is less by this part in the next snapshot, as a divisor, does not stay.
const PASSING: u64 = 4;

/// The part of the document on pins, and the sentence that it may begin with.
pub struct Shown {
    /// Names the site that holds most, where that matters.
    pub sentence: Option<String>,
    /// The section.
    pub section: Section,
}

/// What the snapshots have on pins; none where no snapshot has any.
pub fn shown(ledger: &Ledger, sites: &Sites, call_sites: &mut CallSites) -> Option<Shown> {
    let worst = &ledger.snapshots[ledger.most_pinned()?];
    let pins = worst.pins.as_ref().filter(|pins| pins.bytes > 0)?;
    let rows = rows(pins, call_sites);
    let is_known = rows.iter().any(|row| row.pin.site != 0);
    let sentence = (is_known && pins.bytes >= worst.rss_bytes / NOTABLE && !is_passing(ledger, pins))
        .then(|| rows.first().map(|row| sentence(row, worst, pins)))
        .flatten();
    let mut text = vec![summary(worst, pins)];
    let mut items = Vec::new();
    if pins.bytes < worst.rss_bytes / SHOWN {
        text.push("That is less than 1 % of RSS: no call site is to blame.".into());
    } else if is_known {
        let around = worst.picture.as_ref().and_then(|picture| around::shown(picture, &rows, call_sites));
        if let Some(picture) = &worst.picture {
            items.push(Item::Mosaic(mosaic(picture, worst, &rows, call_sites)));
        }
        items.push(Item::Table(table(&rows, pins)));
        if let Some((table, sentence)) = around {
            text.push(sentence);
            items.push(Item::Table(table));
        }
        items.push(Item::Chart(chart(ledger, &rows, call_sites)));
        items.push(Item::Flame(flame(worst, pins, sites)));
    } else {
        text.push(
            "Call sites were not recorded: `heaptoll ledger -- COMMAND`, or `heaptoll record --ledger \
             --sites`, names those that pin pages."
                .into(),
        );
    }
    Some(Shown { sentence, section: Section { title: "Who pins the pages".into(), text, items } })
}

/// Whether the worst fragmentation is of the middle of frees: in the next snapshot there is less, and less is live.
fn is_passing(ledger: &Ledger, pins: &Pins) -> bool {
    let Some(at) = ledger.most_pinned() else { return false };
    let pinned = |snapshot: &Snapshot| snapshot.pins.as_ref().map_or(0, |pins| pins.bytes);
    let most_live = ledger.fullest().map_or(0, |at| ledger.snapshots[at].live_bytes);
    ledger.snapshots.get(at + 1).is_some_and(|next| {
        pinned(next) < pins.bytes - pins.bytes / PASSING
            && next.live_bytes + most_live / STEP < ledger.snapshots[at].live_bytes
    })
}

/// The call sites that the snapshots name, in order of their numbers.
pub fn named_sites(ledger: &Ledger, sites: Option<&Sites>) -> Vec<NamedSite> {
    let Some(sites) = sites else { return Vec::new() };
    let numbers: BTreeSet<u32> = ledger.snapshots.iter().flat_map(Snapshot::sites).collect();
    let mut call_sites = CallSites::new(sites, heaptoll_callsites::FRAMES);
    let rows: Vec<(u32, usize)> = numbers.into_iter().map(|site| (site, call_sites.row(site))).collect();
    rows.into_iter()
        .map(|(site, row)| NamedSite { site, name: call_sites.name(row), stack: call_sites.whole(site) })
        .collect()
}

fn sentence(row: &Row, snapshot: &Snapshot, pins: &Pins) -> String {
    let pin = &row.pin;
    format!(
        "{} pins {} with {} in {}. After {} s, external fragmentation is {} % of RSS. This call site causes \
         {} % of it, {} on pages without blocks of other call sites.",
        row.name,
        whole_bytes(pin.bytes()),
        whole_bytes(pin.block_bytes),
        plural(pin.blocks as usize, "block"),
        seconds(snapshot.time_ns as f64 / 1e9),
        per_hundred(pins.bytes, snapshot.whole()),
        per_hundred(pin.bytes(), pins.bytes),
        whole_bytes(pin.alone_bytes),
    )
}

fn summary(snapshot: &Snapshot, pins: &Pins) -> String {
    format!(
        "After {} s, at its largest in the snapshots, external fragmentation was {}: free bytes on {} of {} \
         with live blocks.",
        seconds(snapshot.time_ns as f64 / 1e9),
        whole_bytes(pins.bytes),
        count(pins.pages as f64),
        plural(pins.live_pages as usize, "resident page"),
    )
}

fn table(rows: &[Row], pins: &Pins) -> Table {
    let mut others = pins.others;
    rows.iter().skip(ROWS).for_each(|row| others.add(&row.pin));
    let others = (others.bytes() > 0).then_some(("all other call sites", &others));
    Table::of(rows.iter().take(ROWS).map(|row| (row.name.as_str(), &row.pin)).chain(others))
        .sites("Call site of the live blocks", |(name, _)| *name)
        .figure("Pins KiB", |(_, pin)| kib(pin.bytes()))
        .figure("%", |(_, pin)| per_hundred(pin.bytes(), pins.bytes))
        .figure("alone KiB", |(_, pin)| kib(pin.alone_bytes))
        .optional("pages alone", |(_, pin)| count(pin.alone_pages as f64))
        .optional("pages shared", |(_, pin)| count(pin.shared_pages as f64))
        .figure("Blocks", |(_, pin)| count(pin.blocks as f64))
        .figure("KiB in them", |(_, pin)| kib(pin.block_bytes))
        .optional("allocated since, KiB", |(_, pin)| (pin.blocks > 0).then(|| kib(pin.mean_age_bytes())))
        .note(
            "Pins: free bytes on pages with a live block of this call site. Call sites on the same page share \
             its free bytes equally. Alone: on pages where one call stack has the only live blocks, which would be empty \
             without them. Allocated since: bytes that the program allocated after these blocks, on average \
             (their age).",
        )
        .table()
}

/// What the sites that hold most at the worst time hold over the run.
fn chart(ledger: &Ledger, rows: &[Row], call_sites: &mut CallSites) -> Chart {
    let first = &rows[..rows.len().min(SERIES)];
    let mut points: Vec<Vec<(f64, f64)>> = vec![Vec::new(); first.len() + 1];
    for snapshot in &ledger.snapshots {
        let Some(pins) = &snapshot.pins else { continue };
        let at = snapshot.time_ns as f64 / 1e9;
        let now = pin_rows::rows(pins, call_sites);
        let mut rest = pins.bytes;
        for (series, first) in points.iter_mut().zip(first) {
            let held = now.iter().find(|row| row.row == first.row).map_or(0, |row| row.pin.bytes());
            rest -= held.min(rest);
            series.push((at, held as f64 / MIB));
        }
        if let Some(others) = points.last_mut() {
            others.push((at, rest as f64 / MIB));
        }
    }
    let names = first.iter().map(|row| row.name.as_str()).chain(["all others"]);
    Chart {
        title: "Free bytes on live pages over time, by the call site that pins them".into(),
        caption: "The areas on top of each other are external fragmentation.".into(),
        form: Form::Stacked,
        x: Axis::even("time s"),
        y: Axis::even("resident MiB"),
        series: names.zip(points).map(|(name, points)| Series::of(name, points)).collect(),
    }
}

/// The call stacks of the live blocks at the worst time.
fn flame(snapshot: &Snapshot, pins: &Pins, sites: &Sites) -> Flame {
    let measures =
        [Measure::PinnedBytes, Measure::PinnedAloneBytes, Measure::PinningObjects, Measure::PinningBytes];
    let mut builder = Builder::new(measures.to_vec());
    let mut frames = Frames::new(sites);
    let values = |pin: &Pin| [pin.bytes(), pin.alone_bytes, pin.blocks, pin.block_bytes];
    for pin in &pins.sites {
        let stack = frames.stack(pin.site, false, &mut builder);
        builder.stack(&stack, &values(pin));
    }
    if pins.others.bytes() > 0 {
        let others = Frame { function: "[all other call stacks]".into(), ..Frame::default() };
        let others = builder.frame(others);
        builder.stack(&[others], &values(&pins.others));
    }
    Flame {
        title: "Call stacks whose live blocks pin pages".into(),
        caption: format!(
            "After {} s. A block counts for the call stack that allocated it. Call stacks on the same page \
             share its free bytes equally. A snapshot has the call stacks that pin most; all others are one.",
            seconds(snapshot.time_ns as f64 / 1e9)
        ),
        profile: builder.finish(),
        first: Measure::PinnedBytes,
        base: None,
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_report::format::printable;
    use heaptoll_trace::{Frame, Site};

    use super::*;

    fn sites() -> Sites {
        let frame =
            |function: &str| Frame { function: function.into(), object: "/bin/p".into(), ..Frame::default() };
        Sites {
            frames: vec![frame("log_audit"), frame("serve"), frame("main"), frame("x<b>\n;")],
            sites: [vec![], vec![0, 1, 2], vec![3, 2], vec![0, 1, 1, 2]].map(|frames| Site { frames }).into(),
        }
    }

    fn shown(ledger: &Ledger, sites: &Sites) -> Option<Shown> {
        super::shown(ledger, sites, &mut CallSites::new(sites, heaptoll_callsites::FRAMES))
    }

    fn pin(site: u32, alone_bytes: u64, shared_bytes: u64) -> Pin {
        Pin { site, alone_bytes, shared_bytes, blocks: 10, block_bytes: 512, ..Pin::default() }
    }

    fn ledger(pins: Vec<Pin>) -> Ledger {
        let bytes = pins.iter().map(Pin::bytes).sum();
        let pins = Pins { sites: pins, bytes, pages: 5, live_pages: 9, ..Pins::default() };
        let small = Snapshot { pins: Some(Pins::default()), ..Snapshot::default() };
        let large = Snapshot {
            time_ns: 2_000_000_000,
            rss_bytes: 4 * bytes,
            pins: Some(pins),
            ..Snapshot::default()
        };
        Ledger { snapshots: vec![small, large, Snapshot::default()], ..Ledger::default() }
    }

    #[test]
    fn the_sentence_names_the_site_that_holds_most() {
        let ledger = ledger(vec![pin(2, 100, 0), pin(1, 50, 30), pin(3, 10, 30)]);
        let shown = shown(&ledger, &sites()).expect("there are pins");
        let sentence = shown.sentence.expect("a quarter of the resident set");
        assert!(sentence.starts_with("log_audit < serve (x1 to x2) < main pins 120 B with"), "{sentence}");
        assert!(sentence.contains("25.0 % of RSS"), "{sentence}");
        assert!(sentence.contains("causes 54.5 % of it"), "{sentence}");
        let Item::Table(table) = &shown.section.items[0] else { panic!("no table") };
        assert_eq!(table.rows.len(), 2);
        let Item::Chart(chart) = &shown.section.items[1] else { panic!("no chart") };
        assert_eq!(chart.series.len(), 3);
        let at_worst: f64 = chart.series.iter().map(|series| series.points[1].1 * MIB).sum();
        assert!((at_worst - 220.0).abs() < 1e-6, "{at_worst}");
        assert!(!printable(&table.rows[1][0].text).contains('\n'));
    }

    /// A container that was being destroyed seemed to pin pages, by another figure in each run.
    #[test]
    fn fragmentation_in_the_middle_of_frees_is_no_sentence() {
        let mut frees = ledger(vec![pin(1, 100, 0)]);
        assert!(shown(&frees, &sites()).expect("there are pins").sentence.is_some(), "nothing is freed");
        frees.snapshots[1].live_bytes = 1000;
        let found = shown(&frees, &sites()).expect("there are pins");
        assert!(found.sentence.is_none() && !found.section.items.is_empty());
        let stays = frees.snapshots[1].pins.clone();
        frees.snapshots[2].pins = stays;
        assert!(shown(&frees, &sites()).expect("there are pins").sentence.is_some(), "it stays");
    }

    #[test]
    fn little_is_not_attributed_and_unknown_sites_name_the_option() {
        let mut few = ledger(vec![pin(1, 100, 0)]);
        few.snapshots[1].rss_bytes = 1 << 20;
        let found = shown(&few, &sites()).expect("there are pins");
        assert_eq!((found.sentence, found.section.items.len()), (None, 0));
        let unknown = shown(&ledger(vec![pin(0, 100, 0)]), &sites()).expect("there are pins");
        assert_eq!((unknown.sentence, unknown.section.items.len()), (None, 0));
        assert!(unknown.section.text[1].contains("--sites"));
        assert!(shown(&Ledger::default(), &sites()).is_none());
        assert!(shown(&ledger(Vec::new()), &sites()).is_none());
    }
}
