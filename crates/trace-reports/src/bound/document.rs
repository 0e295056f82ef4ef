//! The document of `heaptoll trace bound`: its sentences and tables.

use std::path::Path;

use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Section, Series, Table};
use heaptoll_report::format::{NONE, shell_command};
use heaptoll_trace_analysis::bound::{BoundFigures, RECTANGLES_MAX};
use heaptoll_units::{factor, mib, number, percent, time_ns, whole_bytes};

use heaptoll_command::subject;

/// The whole document.
pub fn document(figures: &BoundFigures, trace: &Path) -> Document {
    let mut command = vec!["heaptoll".to_owned(), "bound".into(), trace.display().to_string()];
    if figures.options.small_blocks_of_8 {
        command.push("--small-8".into());
    }
    Document {
        title: format!("The smallest heap for {}", figures.subject.program()),
        subtitle: subject::subtitle(&figures.subject),
        warnings: subject::warnings(&figures.subject, 0),
        sections: vec![bounds(figures), packings(figures)],
        facts: subject::facts(&figures.subject, trace, figures.events),
        command: shell_command(&command),
        ..Document::default()
    }
}

/// A size as a multiple of the lower bound.
fn times(bytes: u64, figures: &BoundFigures) -> String {
    match figures.lower_bound_bytes {
        0 => NONE.to_owned(),
        lower => factor(bytes as f64 / lower as f64),
    }
}

/// The table of what was necessary, what was enough, and what was taken.
fn bounds(figures: &BoundFigures) -> Section {
    let best = figures.best_bytes();
    let lower = figures.lower_bound_bytes;
    let rounding =
        if figures.options.small_blocks_of_8 { "16, blocks of at most 8 bytes to 8" } else { "16" };
    let mut rows = vec![
        row("live bytes at most", figures.max_live_bytes, figures, "as requested by the program"),
        row(
            "lower bound",
            lower,
            figures,
            &format!("blocks rounded up to multiples of {rounding}; at event {}", number(figures.peak_event)),
        ),
        row("best packing", best, figures, "enough if each free is known in advance"),
    ];
    let recorded = &figures.recorded;
    if let Some(usable) = recorded.max_usable_bytes {
        rows.push(row(
            "usable bytes at most",
            usable,
            figures,
            &format!("usable sizes of the live blocks of {}", manager(figures)),
        ));
    }
    if let Some(peak) = recorded.peak_heap_bytes {
        rows.push(row(
            "heap as recorded",
            peak,
            figures,
            &format!("the largest heap of {}", manager(figures)),
        ));
    }
    let mut columns = Column::headings(["", "bytes", "in bytes", "of the lower bound", ""]);
    columns[4] = Column::text("");
    let section = Section { text: verdict(figures), ..Section::new("What was possible") };
    section.with(Table::listed(columns, rows)).with(curve(figures))
}

fn row(name: &str, bytes: u64, figures: &BoundFigures, remark: &str) -> [String; 5] {
    [name.to_owned(), whole_bytes(bytes), number(bytes), times(bytes, figures), remark.to_owned()]
}

fn manager(figures: &BoundFigures) -> &str {
    match figures.subject.manager.as_str() {
        "" => "the recorded manager",
        name => name,
    }
}

/// The findings in sentences.
fn verdict(figures: &BoundFigures) -> Vec<String> {
    let (lower, best) = (figures.lower_bound_bytes, figures.best_bytes());
    if lower == 0 {
        return vec!["Nothing was allocated: no heap is needed.".to_owned()];
    }
    let mut verdict_text = vec![if best == lower {
        format!(
            "The smallest heap is {}: no manager that keeps objects in place can use less, and one packing uses \
             exactly this.",
            whole_bytes(lower)
        )
    } else {
        format!(
            "The smallest heap lies between {} and {}, {} apart. No manager that keeps objects in place can use less \
             than the first. One that knows the future needs at most the second.",
            whole_bytes(lower),
            whole_bytes(best),
            percent(best as f64 / lower as f64 - 1.0)
        )
    }];
    match figures.recorded.peak_heap_bytes {
        Some(peak) if peak >= best => verdict_text.extend([
            format!(
                "The heap of {} was {} at its peak: {} more than the best packing, {} more than the lower bound.",
                manager(figures),
                whole_bytes(peak),
                percent(peak as f64 / best as f64 - 1.0),
                percent(peak as f64 / lower as f64 - 1.0)
            ),
            savings(peak, best, lower),
        ]),
        Some(peak) if peak >= lower => verdict_text.push(format!(
            "The heap of {} was {} at its peak: less than the best packing found here, at most {} more than necessary.",
            manager(figures),
            whole_bytes(peak),
            percent(peak as f64 / lower as f64 - 1.0)
        )),
        Some(peak) => verdict_text.push(format!(
            "The largest sampled heap of {} was {}, less than the lower bound. The samples missed its peak, or it \
             keeps blocks elsewhere, or it rounds less than assumed here. So it is hardly larger than necessary.",
            manager(figures),
            whole_bytes(peak)
        )),
        None => verdict_text.push(
            "The trace does not contain the heap size of the recorded manager: `heaptoll trace replay` measures it \
             for any manager."
                .to_owned(),
        ),
    }
    if figures.recorded.peak_heap_bytes.is_some() {
        verdict_text.push(
            "The recorded heap is all mappings with blocks. The kernel joins neighbouring mappings, so it can \
             include memory that the program mapped itself. `heaptoll trace replay` measures the manager alone."
                .to_owned(),
        );
    }
    verdict_text.push(after_the_peak(figures));
    verdict_text
}

/// What other managers could have saved of a heap of `peak` bytes.
fn savings(peak: u64, best: u64, lower: u64) -> String {
    let (by_best, by_any) = (whole_bytes(peak - best), whole_bytes(peak - lower));
    let limit = if best == lower {
        format!(
            "A manager that knows the future could have saved {by_best}, and no other could have saved more."
        )
    } else {
        format!(
            "A manager that knows the future could have saved {by_best}; no manager that keeps objects in place \
             could have saved more than {by_any}."
        )
    };
    format!("{limit} A manager that does not know the future saves less.")
}

/// States that the bounds are of the peak, and how much was held for nothing after it.
fn after_the_peak(figures: &BoundFigures) -> String {
    const ONLY: &str = "These bounds describe the peak, not the time after it";
    match figures.after_peak {
        Some(after_peak) if after_peak.held_bytes > after_peak.live_bytes => format!(
            "{ONLY}: {} after the beginning the heap kept {} in memory for at most {} of live data, so {} were \
             wasted. `heaptoll ledger` shows the causes.",
            time_ns(after_peak.time_ns as f64),
            whole_bytes(after_peak.held_bytes),
            whole_bytes(after_peak.live_bytes),
            percent(1.0 - after_peak.live_bytes as f64 / after_peak.held_bytes as f64)
        ),
        _ => format!("{ONLY}: `heaptoll ledger` shows it."),
    }
}

/// Live bytes over the trace under the two bounds.
fn curve(figures: &BoundFigures) -> Chart {
    let last = figures.events.max(1) as f64;
    let level = |name: &str, bytes: u64| Series::of(name, vec![(0.0, mib(bytes)), (last, mib(bytes))]);
    let mut series = vec![
        Series {
            name: "live, rounded up".into(),
            points: figures
                .curve
                .iter()
                .map(|point| (point.event as f64, mib(point.rounded_bytes)))
                .collect(),
            ..Series::default()
        },
        Series {
            name: "live, as requested".into(),
            points: figures.curve.iter().map(|point| (point.event as f64, mib(point.live_bytes))).collect(),
            ..Series::default()
        },
        level("lower bound", figures.lower_bound_bytes),
        level("best packing", figures.best_bytes()),
    ];
    if let Some(peak) = figures.recorded.peak_heap_bytes {
        series.push(level("heap as recorded", peak));
    }
    Chart {
        title: "Live bytes and their heaps".into(),
        caption:
            "Each point is the maximum of a part of the trace. A heap must be as large as the highest point."
                .into(),
        form: Form::Steps,
        x: Axis::even("events"),
        y: Axis::even("MiB"),
        series,
    }
}

/// All packings.
fn packings(figures: &BoundFigures) -> Section {
    let table = Table::of(&figures.packings)
        .text("rule", |packing| packing.rule.clone())
        .figure("heap", |packing| whole_bytes(packing.heap_bytes))
        .figure("in bytes", |packing| number(packing.heap_bytes))
        .figure("of the lower bound", |packing| factor(packing.factor));
    let mut text = vec![
        "Each packing gives every block an address, so that no two live blocks overlap. First fit and best fit do \
         not know the future; the others know when each block is freed."
            .to_owned(),
    ];
    if figures.blocks > RECTANGLES_MAX {
        text.push(format!(
            "With more than {} blocks, packings in another order than allocation are left out.",
            number(RECTANGLES_MAX)
        ));
    }
    Section { text, ..Section::new("Packings") }.with(table)
}

#[cfg(test)]
mod tests {
    use heaptoll_trace_analysis::bound::{AfterPeak, Options, Packing, RecordedManager};
    use heaptoll_trace_analysis::subject::Subject;

    use super::*;

    fn figures(best: u64, peak: Option<u64>) -> BoundFigures {
        BoundFigures {
            subject: Subject { manager: "glibc".into(), ended: Some("exited".into()), ..Subject::default() },
            options: Options { small_blocks_of_8: false },
            events: 10,
            blocks: 5,
            max_live_bytes: 900,
            lower_bound_bytes: 1000,
            peak_event: 7,
            packings: vec![Packing { rule: "first fit".into(), heap_bytes: best, factor: best as f64 / 1e3 }],
            recorded: RecordedManager {
                max_usable_bytes: None,
                peak_heap_bytes: peak,
                over_lower_bound: None,
                over_best_packing: None,
            },
            after_peak: None,
            curve: Vec::new(),
        }
    }

    #[test]
    fn the_verdict_fits_the_figures() {
        let verdict_text = |best, peak| verdict(&figures(best, peak)).join(" ");
        assert!(verdict_text(1000, None).contains("The smallest heap is 1000 B"));
        assert!(
            verdict_text(1000, Some(1500))
                .contains("could have saved 500 B, and no other could have saved more")
        );
        assert!(
            verdict_text(1100, Some(1500))
                .contains("could have saved 400 B; no manager that keeps objects in place could have")
        );
        assert!(verdict_text(1000, None).contains("heaptoll trace replay"));
        assert!(verdict_text(1010, Some(1200)).contains("1.0 % apart"));
        assert!(verdict_text(1000, Some(1200)).contains("20.0 % more than the best packing"));
        assert!(verdict_text(1100, Some(1050)).contains("at most 5.0 % more than necessary"));
        assert!(verdict_text(1000, Some(500)).contains("less than the lower bound"));
    }

    #[test]
    fn memory_wasted_after_the_peak_is_reported() {
        let mut found = figures(1000, Some(1013));
        assert!(verdict(&found).concat().contains("These bounds describe the peak"));
        let after_peak = AfterPeak { time_ns: 2_000_000_000, held_bytes: 24 << 20, live_bytes: 3 << 20 };
        found.after_peak = Some(after_peak);
        let verdict_text = verdict(&found).join(" ");
        assert!(
            verdict_text.contains("24.0 MiB")
                && verdict_text.contains("87.5 %")
                && verdict_text.contains("heaptoll ledger"),
            "{verdict_text}"
        );
    }
}
