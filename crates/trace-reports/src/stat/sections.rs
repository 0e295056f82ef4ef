//! The sections of `heaptoll trace stat` below its first table.

use heaptoll_report::document::{Axis, Chart, Column, Form, Item, Section, Series, Table};
use heaptoll_report::format::plural;
use heaptoll_trace::EventKind;
use heaptoll_trace_analysis::stat::{CallSiteFigures, Point, StatFigures};
use heaptoll_units::{number, objects, part, percent, time_ns, whole_bytes};

/// Threads listed.
const THREADS: usize = 16;
/// Sites listed in each order.
const SITES: usize = 10;

fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Malloc => "malloc",
        EventKind::Calloc => "calloc",
        EventKind::Aligned => "aligned (memalign and its relatives)",
        EventKind::New => "operator new",
        EventKind::Realloc => "realloc",
        EventKind::Free => "free",
        EventKind::Delete => "operator delete",
        EventKind::ReallocFree => "realloc to 0",
        EventKind::Failed => "failed",
        EventKind::Foreign => "foreign (not made in this trace)",
        EventKind::Lost => "lost (free missed by the recorder)",
    }
}

/// Counts and bytes by kind.
pub fn calls(figures: &StatFigures) -> Option<Section> {
    let mean = |bytes: u64, calls: u64| heaptoll_units::bytes(bytes as f64 / calls as f64);
    let table = Table::of(&figures.kinds)
        .text("call", |kind| kind_name(kind.kind))
        .figure("calls", |kind| number(kind.calls))
        .figure("of all", |kind| part(kind.calls, figures.events))
        .figure("bytes", |kind| whole_bytes(kind.bytes))
        .figure("mean", |kind| if kind.calls > 0 { mean(kind.bytes, kind.calls) } else { String::new() });
    Some(Section::new("Calls").with(table.if_any()?))
}

/// The size histogram.
pub fn sizes(figures: &StatFigures) -> Option<Section> {
    let sizes = &figures.sizes;
    let range = |from: u64, up_to: u64| match from == up_to {
        true => whole_bytes(from),
        false if up_to <= 1024 => format!("{from} to {up_to} B"),
        false => format!("to {}", whole_bytes(up_to)),
    };
    let powers = Table::of(&sizes.powers)
        .caption("by powers of two, as requested when the object is made")
        .text("size", |row| range(row.from, row.up_to))
        .figure("objects", |row| number(row.objects))
        .figure("of all", |row| part(row.objects, figures.objects))
        .figure("cumulative", |row| percent(row.cumulative_objects))
        .figure("bytes", |row| whole_bytes(row.bytes))
        .figure("cumulative", |row| percent(row.cumulative_bytes))
        .if_any()?;
    let kinds = number(sizes.distinct);
    let commonest = Table::of(&sizes.commonest)
        .caption(format!("the {} commonest of {kinds} different sizes", sizes.commonest.len()))
        .text("size", |size| format!("{} B", number(size.size)))
        .figure("objects", |size| number(size.objects))
        .figure("of all", |size| percent(size.share))
        .figure("cumulative", |size| percent(size.cumulative))
        .notes((sizes.not_distinguished > 0).then(|| {
            format!(
                "The exact sizes of {} were not kept, because there are too many different ones.",
                objects(sizes.not_distinguished)
            )
        }));
    let names = sizes.powers.iter().map(|row| whole_bytes(row.up_to)).collect();
    let bars = |name: &str, value: fn(&heaptoll_trace_analysis::stat::SizeRow) -> u64, whole: u64| Series {
        name: name.to_owned(),
        points: sizes
            .powers
            .iter()
            .enumerate()
            .map(|(x, row)| (x as f64, share(value(row), whole)))
            .collect(),
        ..Series::default()
    };
    let requested_bytes: u64 = sizes.powers.iter().map(|row| row.bytes).sum();
    let chart = Chart {
        title: "Sizes".into(),
        caption:
            "Share of objects and of bytes by size; a bar covers sizes from half of its label to the label."
                .into(),
        form: Form::Bars,
        x: Axis { title: "requested size".into(), log: false, names },
        y: Axis::even("share, %"),
        series: vec![
            bars("objects", |row| row.objects, figures.objects),
            bars("bytes", |row| row.bytes, requested_bytes),
        ],
    };
    Some(Section::new("Sizes").with(powers).with(commonest).with(chart))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// How realloc was used; nothing when it was not.
pub fn reallocs(figures: &StatFigures) -> Option<Section> {
    let reallocs = &figures.reallocs;
    if reallocs.calls == 0 {
        return None;
    }
    let of_calls = |calls| part(calls, reallocs.calls);
    let text = vec![
        format!(
            "Of {} calls {} grow, {} shrink, {} keep the size; {} stay in place and {} move, which copies {}.",
            number(reallocs.calls),
            of_calls(reallocs.grown),
            of_calls(reallocs.shrunk),
            of_calls(reallocs.same_size),
            of_calls(reallocs.in_place),
            of_calls(reallocs.moved),
            whole_bytes(reallocs.copied_bytes)
        ),
        format!(
            "Objects that are resized at all: {} ({}); most resizes of one: {}.",
            number(reallocs.resized_objects),
            part(reallocs.resized_objects, figures.objects),
            number(reallocs.longest_chain)
        ),
    ];
    let factors = Table::of(reallocs.factors.iter().filter(|row| row.calls > 0))
        .caption("new size by old size")
        .text("factor", |row| row.factor.clone())
        .figure("calls", |row| number(row.calls))
        .figure("of all", |row| of_calls(row.calls));
    let chains = Table::of(&reallocs.chains)
        .caption("how often the same object is resized")
        .text("times", |row| match row.from == row.up_to {
            true => number(row.from),
            false => format!("{} to {}", number(row.from), number(row.up_to)),
        })
        .figure("objects", |row| number(row.objects))
        .figure("of resized", |row| part(row.objects, reallocs.resized_objects));
    let section = Section { text, ..Section::new("Realloc") };
    Some(section.with_all(factors.if_any()).with_all(chains.if_any()))
}

/// Allocations and frees by thread; nothing for a single thread.
pub fn threads(figures: &StatFigures) -> Option<Section> {
    if figures.threads.len() < 2 {
        return None;
    }
    let mut threads: Vec<_> = figures.threads.iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.objects + thread.resizes + thread.frees));
    let caption = match threads.len().saturating_sub(THREADS) {
        0 => String::new(),
        more => format!("the {THREADS} busiest; {} more", number(more as u64)),
    };
    let text = format!(
        "{} threads; {} of frees free another thread's object.",
        number(threads.len() as u64),
        part(figures.cross_thread_frees, figures.frees)
    );
    let table = Table::of(threads.into_iter().take(THREADS))
        .caption(caption)
        .text("thread", |thread| thread.thread.to_string())
        .figure("objects", |thread| number(thread.objects))
        .figure("bytes", |thread| whole_bytes(thread.bytes))
        .figure("resizes", |thread| number(thread.resizes))
        .figure("frees", |thread| number(thread.frees))
        .figure("of others' objects", |thread| part(thread.frees_of_others, thread.frees));
    Some(Section::new("Threads").state(text).with(table))
}

/// How long calls took, when the trace has that.
pub fn latencies(figures: &StatFigures) -> Option<Section> {
    let first = figures.latencies.first()?;
    let table = Table::of(&figures.latencies)
        .caption("percentiles of the time in the manager")
        .text("call", |latency| latency.call.name())
        .figure("calls", |latency| number(latency.calls))
        .figure("mean", |latency| time_ns(latency.mean_ns))
        .each(
            first.percentiles.iter().enumerate(),
            |(_, (percentile, _))| Column::figures(&format!("{percentile} %")),
            |latency, (at, _)| time_ns(latency.percentiles[*at].1 as f64),
        )
        .figure("longest", |latency| time_ns(latency.max_ns as f64));
    Some(Section::new("Latency").with(table))
}

/// Call sites that allocate, when the trace has call stacks.
pub fn sites(figures: &StatFigures, flame: Option<Item>) -> Option<Section> {
    let top = |caption: &str, key: fn(&CallSiteFigures) -> u64| {
        let mut sites: Vec<&CallSiteFigures> =
            figures.call_sites.iter().filter(|site| key(site) > 0).collect();
        sites.sort_by_key(|site| std::cmp::Reverse(key(site)));
        let table = Table::of(sites.into_iter().take(SITES))
            .caption(caption)
            .sites("site", |site| site.name.clone())
            .figure("stacks", |site| number(site.stacks))
            .figure("objects", |site| number(site.objects))
            .figure("bytes", |site| whole_bytes(site.bytes))
            .figure("of all", |site| part(site.bytes, figures.bytes))
            .figure("at the peak", |site| whole_bytes(site.at_peak.bytes))
            .figure("never freed", |site| whole_bytes(site.at_exit.bytes));
        table.if_any().map(Item::Table)
    };
    let items = [
        flame,
        top("by bytes allocated", |site| site.bytes),
        top("by objects allocated", |site| site.objects),
        top("by bytes alive at the peak", |site| site.at_peak.bytes),
        top("by bytes never freed", |site| site.at_exit.bytes),
    ];
    let items: Vec<Item> = items.into_iter().flatten().collect();
    let text = format!("{} call stacks allocate.", number(figures.sites.len() as u64));
    (!items.is_empty()).then(|| Section { title: "Call sites".into(), text: vec![text], items })
}

/// Live bytes over the run, as charts.
pub fn over_the_run(figures: &StatFigures) -> Option<Section> {
    if figures.objects == 0 {
        return None;
    }
    const MIB: f64 = (1 << 20) as f64;
    let series = |name: &str, point: &dyn Fn(&Point) -> (f64, f64)| {
        Series::of(name, figures.timeline.iter().map(point).collect())
    };
    let clock = |point: &Point| point.clock_bytes as f64 / MIB;
    let seconds = |point: &Point| point.time_ns as f64 / 1e9;
    let live = |point: &Point| point.live_bytes as f64 / MIB;
    let chart = |title: &str, x: &str, y: &str, caption: &str, series| Chart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        form: Form::Steps,
        x: Axis::even(x),
        y: Axis::even(y),
        series,
    };
    let envelope = "Each point is the maximum of a range of events.";
    let mut by_time = vec![series("live bytes", &|point| (seconds(point), live(point)))];
    if !figures.resident.is_empty() {
        let resident = figures.resident.iter().map(|&(ns, kib)| (ns as f64 / 1e9, kib as f64 / 1024.0));
        by_time.push(Series::of("resident set", resident.collect()));
    }
    let charts = [
        chart(
            "Live bytes by bytes allocated",
            "bytes allocated, MiB",
            "live, MiB",
            envelope,
            vec![series("live bytes", &|point| (clock(point), live(point)))],
        ),
        chart(
            "Live bytes over time",
            "s",
            "MiB",
            "The resident set covers the whole process and is sampled.",
            by_time,
        ),
        chart(
            "Live objects by bytes allocated",
            "bytes allocated, MiB",
            "objects",
            envelope,
            vec![series("live objects", &|point| (clock(point), point.live_objects as f64))],
        ),
    ];
    let at_exit = figures.when_exit_began.filter(|live| *live != figures.at_exit);
    let mut text = vec![format!(
        "At most {} are alive,{} at the end {}.",
        whole_bytes(figures.peak.live_bytes),
        at_exit.map_or_else(String::new, |live| format!(" {} when exit begins,", whole_bytes(live.bytes))),
        whole_bytes(figures.at_exit.bytes)
    )];
    // The last sample may have come long before the peak.
    let resident = figures.subject.peak_rss_kib.map(|kib| kib.saturating_mul(1024));
    text.extend(resident.filter(|resident| *resident >= figures.peak.live_bytes).map(|resident| {
        let samples = plural(figures.resident.len(), "sample");
        format!("At least {} was resident (largest of {samples}).", whole_bytes(resident))
    }));
    Some(Section { text, ..Section::new("Over the run") }.with_all(charts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "The largest sampled resident set is 4.79 MiB" stood below "most bytes alive 7.45 MiB".
    #[test]
    fn samples_show_what_was_resident_at_least_and_nothing_below_the_bytes_alive() {
        let mut figures = StatFigures { objects: 1, resident: vec![(1, 4908)], ..StatFigures::default() };
        let text = |figures: &StatFigures| over_the_run(figures).expect("an object").text;
        assert_eq!(text(&figures).len(), 1, "unknown");
        figures.subject.peak_rss_kib = Some(8480);
        assert_eq!(text(&figures)[1], "At least 8.28 MiB was resident (largest of 1 sample).");
        figures.peak.live_bytes = 8481 << 10;
        assert_eq!(text(&figures).len(), 1, "below the bytes alive");
    }
}
