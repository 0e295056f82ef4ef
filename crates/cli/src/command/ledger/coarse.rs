//! The coarse ledger in words: of a trace that has samples of the resident set only.

use heaptoll_ledger::Point;
use heaptoll_report::document::{Chart, Column, Document, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, mib_from_bytes, seconds};

use super::document::{MIB, axis, kib, spread};

const NOT_ASKED: &str = "This trace was recorded without --ledger, so nobody looked at the pages of the process: what is \
    resident of the live blocks is not known, and the rest of the resident set is not told apart. `heaptoll record \
    --ledger` or `heaptoll ledger -- COMMAND` tell all.";
const NO_LOOK: &str = "Nobody looked at the pages of this process: it ended too soon, or the kernel did not let us. What is \
    resident of the live blocks is not known, and the rest of the resident set is not told apart. A larger input makes it \
    run longer.";

/// The document of a trace that has samples only. `was_asked`: it was to have looks, too.
pub fn document(points: &[Point], manager: &str, subject: &str, was_asked: bool) -> Document {
    let mut document = Document {
        title: "Where the memory is".into(),
        subtitle: format!("{subject}, under {manager}"),
        warnings: vec![if was_asked { NO_LOOK } else { NOT_ASKED }.into()],
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
        columns: titles.iter().map(|&title| Column::figures(title)).collect(),
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
            Series {
                name: "resident".into(),
                points: over(|point| point.rss_bytes as f64),
                ..Series::default()
            },
            Series {
                name: "live".into(),
                points: over(|point| point.live_bytes as f64),
                ..Series::default()
            },
            Series {
                name: "live and internal".into(),
                points: over(|point| (point.live_bytes + point.internal_bytes) as f64),
                ..Series::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_before_it_was_looked_at_is_not_said_to_be_recorded_without_ledger() {
        let said = |was_asked| document(&[], "knuth", "true", was_asked).warnings.concat();
        assert!(said(false).contains("recorded without --ledger"));
        assert!(said(true).contains("ended too soon") && !said(true).contains("--ledger"));
    }
}
