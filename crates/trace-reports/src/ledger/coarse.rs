//! The document of the coarse ledger, of a trace that has samples of the resident set only.

use heaptoll_ledger::Point;
use heaptoll_report::document::{Axis, Chart, Document, Form, Section, Series, Table};
use heaptoll_report::format::{mib_from_bytes, seconds};
use heaptoll_units::{MIB, kib};

use super::over_time::spread;

const NOT_REQUESTED: &str = "This trace was recorded without --ledger, so it lacks the pages of the process. \
                             The resident part of live blocks is unknown, and the rest of RSS is not split. \
                             `heaptoll record --ledger` or `heaptoll ledger -- COMMAND` show all.";
const NO_SAMPLE: &str = "The pages of this process were not read: it ended too soon, or the kernel did not \
                         allow it. The resident part of live blocks is unknown, and the rest of RSS is not \
                         split. A larger input makes it run longer.";

/// The document of a trace that has samples only. `was_requested`: snapshots were requested, too.
pub fn document(points: &[Point], manager: &str, subject: &str, was_requested: bool) -> Document {
    let mut document = Document {
        title: "Where the memory is".into(),
        subtitle: format!("{subject}, under {manager}"),
        warnings: vec![if was_requested { NO_SAMPLE } else { NOT_REQUESTED }.into()],
        ..Document::default()
    };
    let Some(peak) = points.iter().max_by_key(|point| point.rss_bytes) else { return document };
    let shown = spread(points.len(), points.iter().position(|point| point == peak));
    let table = Table::of(shown.into_iter().map(|at| &points[at]))
        .figure("Time s", |point| seconds(point.time_ns as f64 / 1e9))
        .figure("Resident KiB", |point| kib(point.rss_bytes))
        .figure("Live KiB", |point| kib(point.live_bytes))
        .figure("Internal KiB", |point| kib(point.internal_bytes))
        // None where more is live than is resident.
        .figure("Rest KiB", |point| u64::try_from(point.rest_bytes()).ok().map(kib))
        .note(
            "Live: requested and not freed, resident or not. Internal: bytes of these blocks that were not \
             requested. Rest: RSS less both, with fragmentation, caches, metadata, code, stacks and the \
             recorder's own rings.",
        )
        .note("–: more is live than resident, because the program has not touched all that it requested.");
    let over = |value: fn(&Point) -> f64| {
        points.iter().map(|point| (point.time_ns as f64 / 1e9, value(point) / MIB)).collect()
    };
    let chart = Chart {
        title: "Resident and live bytes".into(),
        caption: "Live bytes need not be resident.".into(),
        form: Form::Lines,
        x: Axis::even("time s"),
        y: Axis::even("MiB"),
        series: vec![
            Series::of("resident", over(|point| point.rss_bytes as f64)),
            Series::of("live", over(|point| point.live_bytes as f64)),
            Series {
                name: "live and internal".into(),
                points: over(|point| (point.live_bytes + point.internal_bytes) as f64),
                ..Series::default()
            },
        ],
    };
    let text = format!(
        "At its peak the process had {} MiB in memory, while {} MiB were live.",
        mib_from_bytes(peak.rss_bytes as f64),
        mib_from_bytes(peak.live_bytes as f64)
    );
    document.sections.push(Section::new("Over time").state(text).with(table).with(chart));
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_before_it_was_sampled_is_not_reported_as_recorded_without_ledger() {
        let warning = |was_requested| document(&[], "knuth", "true", was_requested).warnings.concat();
        assert!(warning(false).contains("recorded without --ledger"));
        assert!(warning(true).contains("ended too soon") && !warning(true).contains("--ledger"));
    }
}
