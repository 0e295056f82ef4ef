//! The sections of `heaptoll trace stat` below its first table.

use heaptoll_report::document::{Axis, Chart, Form, Item, Section, Series};
use heaptoll_report::format::plural;
use heaptoll_trace::EventKind;
use heaptoll_trace_analysis::stat::{CallSiteFigures, Point, StatFigures};
use heaptoll_units::{bytes, number, objects, part, percent, time_ns, whole_bytes};

use heaptoll_command::tables::{site_table, table, table_item};

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
    let rows = figures.kinds.iter().map(|kind| {
        let mean = if kind.calls > 0 { bytes(kind.bytes as f64 / kind.calls as f64) } else { String::new() };
        vec![
            kind_name(kind.kind).to_owned(),
            number(kind.calls),
            part(kind.calls, figures.events),
            whole_bytes(kind.bytes),
            mean,
        ]
    });
    let item = table_item("", &["call", "calls", "of all", "bytes", "mean"], rows.collect())?;
    Some(Section { title: "Calls".into(), text: Vec::new(), items: vec![item] })
}

/// The size histogram.
pub fn sizes(figures: &StatFigures) -> Option<Section> {
    let sizes = &figures.sizes;
    let range = |from: u64, up_to: u64| match from == up_to {
        true => whole_bytes(from),
        false if up_to <= 1024 => format!("{from} to {up_to} B"),
        false => format!("to {}", whole_bytes(up_to)),
    };
    let powers = sizes.powers.iter().map(|row| {
        vec![
            range(row.from, row.up_to),
            number(row.objects),
            part(row.objects, figures.objects),
            percent(row.cumulative_objects),
            whole_bytes(row.bytes),
            percent(row.cumulative_bytes),
        ]
    });
    let columns = ["size", "objects", "of all", "cumulative", "bytes", "cumulative"];
    let powers =
        table_item("by powers of two, as requested when the object is made", &columns, powers.collect())?;
    let commonest = sizes.commonest.iter().map(|size| {
        vec![
            format!("{} B", number(size.size)),
            number(size.objects),
            percent(size.share),
            percent(size.cumulative),
        ]
    });
    let caption =
        format!("the {} commonest of {} different sizes", sizes.commonest.len(), number(sizes.distinct));
    let mut items = vec![powers];
    let mut commonest = table(&caption, &["size", "objects", "of all", "cumulative"], commonest.collect());
    if sizes.not_distinguished > 0 {
        commonest.notes.push(format!(
            "The exact sizes of {} were not kept, because there are too many different ones.",
            objects(sizes.not_distinguished)
        ));
    }
    items.push(Item::Table(commonest));
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
    items.push(Item::Chart(Chart {
        title: "Sizes".into(),
        caption:
            "Share of objects and of bytes by size; a bar covers sizes from half of its label to the label."
                .into(),
        form: Form::Bars,
        x: Axis { title: "requested size".into(), log: false, names },
        y: Axis { title: "share, %".into(), ..Axis::default() },
        series: vec![
            bars("objects", |row| row.objects, figures.objects),
            bars("bytes", |row| row.bytes, requested_bytes),
        ],
    }));
    Some(Section { title: "Sizes".into(), text: Vec::new(), items })
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
    let factors = reallocs.factors.iter().filter(|row| row.calls > 0);
    let factors = factors.map(|row| vec![row.factor.clone(), number(row.calls), of_calls(row.calls)]);
    let chains = reallocs.chains.iter().map(|row| {
        let times = match row.from == row.up_to {
            true => number(row.from),
            false => format!("{} to {}", number(row.from), number(row.up_to)),
        };
        vec![times, number(row.objects), part(row.objects, reallocs.resized_objects)]
    });
    let items = [
        table_item("new size by old size", &["factor", "calls", "of all"], factors.collect()),
        table_item(
            "how often the same object is resized",
            &["times", "objects", "of resized"],
            chains.collect(),
        ),
    ];
    Some(Section { title: "Realloc".into(), text, items: items.into_iter().flatten().collect() })
}

/// Allocations and frees by thread; nothing for a single thread.
pub fn threads(figures: &StatFigures) -> Option<Section> {
    if figures.threads.len() < 2 {
        return None;
    }
    let mut threads: Vec<_> = figures.threads.iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.objects + thread.resizes + thread.frees));
    let rows = threads.iter().take(THREADS).map(|thread| {
        vec![
            thread.thread.to_string(),
            number(thread.objects),
            whole_bytes(thread.bytes),
            number(thread.resizes),
            number(thread.frees),
            part(thread.frees_of_others, thread.frees),
        ]
    });
    let columns = ["thread", "objects", "bytes", "resizes", "frees", "of others' objects"];
    let caption = match threads.len().saturating_sub(THREADS) {
        0 => String::new(),
        more => format!("the {THREADS} busiest; {} more", number(more as u64)),
    };
    let text = format!(
        "{} threads; {} of frees free another thread's object.",
        number(threads.len() as u64),
        part(figures.cross_thread_frees, figures.frees)
    );
    let item = table_item(&caption, &columns, rows.collect());
    Some(Section { title: "Threads".into(), text: vec![text], items: item.into_iter().collect() })
}

/// How long calls took, when the trace has that.
pub fn latencies(figures: &StatFigures) -> Option<Section> {
    let first = figures.latencies.first()?;
    let mut columns = vec!["call".to_owned(), "calls".into(), "mean".into()];
    columns.extend(first.percentiles.iter().map(|(percentile, _)| format!("{percentile} %")));
    columns.push("longest".into());
    let rows = figures.latencies.iter().map(|latency| {
        let mut row = vec![latency.call.name().to_owned(), number(latency.calls), time_ns(latency.mean_ns)];
        row.extend(latency.percentiles.iter().map(|&(_, ns)| time_ns(ns as f64)));
        row.push(time_ns(latency.max_ns as f64));
        row
    });
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let item = table_item("percentiles of the time in the manager", &columns, rows.collect())?;
    Some(Section { title: "Latency".into(), text: Vec::new(), items: vec![item] })
}

/// Call sites that allocate, when the trace has call stacks.
pub fn sites(figures: &StatFigures, flame: Option<Item>) -> Option<Section> {
    let top = |caption: &str, key: fn(&CallSiteFigures) -> u64| {
        let mut sites: Vec<&CallSiteFigures> =
            figures.call_sites.iter().filter(|site| key(site) > 0).collect();
        sites.sort_by_key(|site| std::cmp::Reverse(key(site)));
        let rows = sites.iter().take(SITES).map(|site| {
            vec![
                site.name.clone(),
                number(site.stacks),
                number(site.objects),
                whole_bytes(site.bytes),
                part(site.bytes, figures.bytes),
                whole_bytes(site.at_peak.bytes),
                whole_bytes(site.at_exit.bytes),
            ]
        });
        let columns = ["site", "stacks", "objects", "bytes", "of all", "at the peak", "never freed"];
        site_table(caption, &columns, rows.collect())
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
    let series = |name: &str, point: &dyn Fn(&Point) -> (f64, f64)| Series {
        name: name.to_owned(),
        points: figures.timeline.iter().map(point).collect(),
        ..Series::default()
    };
    let clock = |point: &Point| point.clock_bytes as f64 / MIB;
    let seconds = |point: &Point| point.time_ns as f64 / 1e9;
    let live = |point: &Point| point.live_bytes as f64 / MIB;
    let chart = |title: &str, x: &str, y: &str, caption: &str, series| {
        Item::Chart(Chart {
            title: title.to_owned(),
            caption: caption.to_owned(),
            form: Form::Steps,
            x: Axis { title: x.to_owned(), ..Axis::default() },
            y: Axis { title: y.to_owned(), ..Axis::default() },
            series,
        })
    };
    let envelope = "Each point is the maximum of a range of events.";
    let mut by_time = vec![series("live bytes", &|point| (seconds(point), live(point)))];
    if !figures.resident.is_empty() {
        let resident = figures.resident.iter().map(|&(ns, kib)| (ns as f64 / 1e9, kib as f64 / 1024.0));
        by_time.push(Series { name: "resident set".into(), points: resident.collect(), ..Series::default() });
    }
    let items = vec![
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
    Some(Section { title: "Over the run".into(), text, items })
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
