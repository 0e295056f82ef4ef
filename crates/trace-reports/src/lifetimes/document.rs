//! The document of `heaptoll trace lifetimes`: its sentences, tables and curves.

use std::path::Path;

use heaptoll_profiles::{Measure, Profile};
use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Section, Series, Table};
use heaptoll_report::format::shell_command;
use heaptoll_trace_analysis::lifetimes::{By, Clock, CurvePoint, GroupFigures, LifetimeFigures, Survival};
use heaptoll_units::{bytes, number, objects, part, percent, time_ns, whole_bytes};

use super::verdict;
use heaptoll_command::call_stacks::flame;
use heaptoll_command::subject;

/// Groups and sites listed.
const LISTED: usize = 20;
/// Groups with a curve, those with the most bytes.
const CURVES: usize = 8;

/// The whole document; with a profile, its flame graph is on the page.
pub fn document(figures: &LifetimeFigures, profile: Option<Profile>, trace: &Path) -> Document {
    let by_bytes = in_bytes(&figures.survival);
    let ages = by_bytes.filter(|_| figures.all.objects > 0).map(|survival| {
        format!("{} Ages are bytes that the program allocates meanwhile.", quantiles(figures, survival))
    });
    let text = ages.into_iter().chain(verdict::sentences(figures)).collect();
    let mut sections = vec![Section { title: String::new(), text, items: Vec::new() }];
    if figures.all.objects > 0 {
        sections.push(survival(figures));
        sections.push(groups(figures));
        sections.push(nurseries(figures));
        sections.extend(never_freed(figures));
        sections.extend(profile.map(call_stacks));
    }
    let mut warnings = subject::warnings(&figures.subject, figures.misfits);
    if figures.lost > 0 {
        warnings.push(format!(
            "the recorder missed the frees of {}: their ages are too high, because they end when the address is used \
             again",
            objects(figures.lost)
        ));
    }
    if figures.subject.collector {
        warnings.push(
            "recorded over a collector: ages end at `free`, even if the collector ignores it".to_owned(),
        );
    }
    let by = match figures.by {
        By::Size => "size",
        By::Site => "site",
        By::Thread => "thread",
    };
    let command =
        ["heaptoll", "trace", "lifetimes", &trace.display().to_string(), "--by", by].map(str::to_owned);
    Document {
        title: format!("Lifetimes of the objects of {}", figures.subject.program()),
        subtitle: subject::subtitle(&figures.subject),
        warnings,
        sections,
        facts: subject::facts(&figures.subject, trace, figures.events),
        command: shell_command(&command),
        ..Document::default()
    }
}

fn age(clock: Clock, age: f64) -> String {
    match clock {
        Clock::Bytes => bytes(age),
        Clock::Time => time_ns(age),
        Clock::Instructions => number(age as u64),
    }
}

fn clock_label(clock: Clock) -> &'static str {
    match clock {
        Clock::Bytes => "bytes allocated",
        Clock::Time => "time",
        Clock::Instructions => "instructions",
    }
}

/// The reading of a clock at the end of the run.
fn end(figures: &LifetimeFigures, clock: Clock) -> f64 {
    match clock {
        Clock::Bytes => figures.clock_bytes as f64,
        Clock::Time => figures.subject.wall_s * 1e9,
        // No tracer gives instructions: every threshold is shown.
        Clock::Instructions => f64::INFINITY,
    }
}

/// Shares and curves of all objects.
fn survival(figures: &LifetimeFigures) -> Section {
    let mut section = Section::new("Ages");
    for survival in &figures.survival {
        let end = end(figures, survival.clock);
        // Beyond the whole run nothing changes any more.
        let shown = survival.younger.iter().scan(0.0, |before, younger| {
            (std::mem::replace(before, younger.age as f64) < end).then_some(younger)
        });
        let mut shares = Table::of(shown)
            .caption(format!("freed before this age, in {}", clock_label(survival.clock)))
            .text("age", |younger| age(survival.clock, younger.age as f64))
            .figure("of objects", |younger| percent(younger.objects))
            .figure("of bytes", |younger| percent(younger.bytes))
            .table();
        if survival.clock != Clock::Bytes {
            shares.notes.push(quantiles(figures, survival));
        }
        if survival.clock == Clock::Time && !figures.subject.event_time {
            shares.notes.push(format!(
                "Times belong to batches of events: ages below about {} look equal (record with --time event).",
                time_ns(figures.time_resolution_ns as f64)
            ));
        }
        section = section.with(shares);
    }
    for survival in &figures.survival {
        let ages = (resolution(figures, survival.clock), end(figures, survival.clock));
        let series = vec![
            series("objects", survival, ages, |point| point.objects),
            series("bytes", survival, ages, |point| point.bytes),
        ];
        section = section.with(curves(survival.clock, "Survival", series));
    }
    section
}

/// Ages below this are not distinguished.
fn resolution(figures: &LifetimeFigures, clock: Clock) -> u64 {
    if clock == Clock::Time { figures.time_resolution_ns.max(1) } else { 1 }
}

/// Which ages halves and nine tenths do not reach. Where nine tenths are never freed, how many are not.
fn quantiles(figures: &LifetimeFigures, survival: &Survival) -> String {
    let resolution = resolution(figures, survival.clock);
    let never = |held: u64, all: u64| format!("{} are never freed", part(held, all));
    let words = |median: Option<u64>, age_90: Option<u64>, never: String| {
        let at = |found: u64| match resolution > 1 && found < resolution {
            true => format!("within about {}", age(survival.clock, resolution as f64)),
            false => format!("before {}", age(survival.clock, found.max(1) as f64)),
        };
        match (median, age_90) {
            (Some(median), Some(age_90)) => {
                format!("half are freed {}, nine tenths {}", at(median), at(age_90))
            }
            (Some(median), None) => format!("half are freed {}, and {never}", at(median)),
            _ => never,
        }
    };
    format!(
        "Of the objects, {}; by their bytes, {}.",
        words(survival.median_age, survival.age_90, never(figures.still_live.objects, figures.all.objects)),
        words(
            survival.median_age_by_bytes,
            survival.age_90_by_bytes,
            never(figures.still_live.bytes, figures.all.bytes)
        )
    )
}

/// A survival curve from the least distinguished age to the end of the run, in the units of its axis.
fn series(
    name: &str,
    survival: &Survival,
    (from, end): (u64, f64),
    y: impl Fn(&CurvePoint) -> f64,
) -> Series {
    let below = survival.curve.iter().take_while(|point| point.age <= from).last();
    // One is the first place of a logarithmic axis, at which all live.
    let mut points = vec![(from as f64, if from > 1 { below.map_or(1.0, &y) } else { 1.0 })];
    let shown = survival.curve.iter().filter(|point| from <= 1 || point.age > from);
    points.extend(shown.map(|point| (point.age as f64, y(point))));
    if let Some(&(last, value)) = points.last()
        && end > last
        && end.is_finite()
    {
        points.push((end, value));
    }
    let unit = if survival.clock == Clock::Time { 1e9 } else { 1.0 };
    let points = points.into_iter().map(|(x, y)| (x / unit, y * 100.0)).collect();
    Series::of(name, points)
}

fn curves(clock: Clock, title: &str, series: Vec<Series>) -> Chart {
    let (unit, of) = match clock {
        Clock::Bytes => ("age, bytes allocated", "by bytes allocated"),
        Clock::Time => ("age, s", "over time"),
        Clock::Instructions => ("age, instructions", "by instructions"),
    };
    Chart {
        title: format!("{title} {of}"),
        caption:
            "Share that lives beyond an age. If a curve ends above 0, the rest was never freed. After Figure 8 of \
             Zorn 1992."
                .to_owned(),
        form: Form::Steps,
        x: Axis::log(unit),
        y: Axis::even("alive, %"),
        series,
    }
}

fn in_bytes(survival: &[Survival]) -> Option<&Survival> {
    survival.iter().find(|survival| survival.clock == Clock::Bytes)
}

/// Ages by size, call site or thread.
fn groups(figures: &LifetimeFigures) -> Section {
    let (title, column) = match figures.by {
        By::Size => ("By size", "last size"),
        By::Site => ("By call site", "site"),
        By::Thread => ("By thread", "thread"),
    };
    let quantile = |group: &GroupFigures, found: fn(&Survival) -> Option<u64>| {
        let found = in_bytes(&group.survival).and_then(found);
        found.map_or_else(|| "never".to_owned(), |found| age(Clock::Bytes, found as f64))
    };
    let beyond = |group: &GroupFigures, age: u64| {
        let younger = in_bytes(&group.survival).and_then(|survival| survival.younger_than(age));
        younger.map(|younger| percent(1.0 - younger.objects))
    };
    let all = figures.groups.len() as u64 + figures.other_groups_count;
    // Size classes are few, and all of them are listed.
    let listed = if figures.by == By::Size { figures.groups.len() } else { LISTED.min(figures.groups.len()) };
    let others = figures.other_groups.as_ref().filter(|_| listed == figures.groups.len());
    let others = others.map(|group| (group, format!("{} others", number(figures.other_groups_count))));
    let named = figures.groups[..listed].iter().map(|group| (group, group.name.clone()));
    let rows: Vec<(&GroupFigures, String)> = named.chain(others).collect();
    let caption = match all.saturating_sub(rows.len() as u64) {
        0 => String::new(),
        _ => format!("the {listed} with the most bytes of {}", number(all)),
    };
    let column = if figures.by == By::Site { Column::sites(column) } else { Column::text(column) };
    let table = Table::of(rows)
        .caption(caption)
        .column(column, |(_, name)| name.clone())
        .figure("objects", |(group, _)| number(group.all.objects))
        .figure("bytes", |(group, _)| whole_bytes(group.all.bytes))
        .figure("median age", |(group, _)| quantile(group, |survival| survival.median_age))
        .figure("90 % end before", |(group, _)| quantile(group, |survival| survival.age_90))
        .figure("beyond 100 KiB", |(group, _)| beyond(group, 100 << 10))
        .figure("beyond 1 MiB", |(group, _)| beyond(group, 1 << 20))
        .figure("never freed", |(group, _)| part(group.still_live.objects, group.all.objects))
        .note("Ages are bytes allocated; shares refer to the group's objects.");
    let mut largest: Vec<&GroupFigures> = figures.groups.iter().collect();
    largest.sort_by_key(|group| std::cmp::Reverse(group.all.bytes));
    largest.truncate(CURVES);
    let series = largest.iter().filter_map(|group| {
        let survival = in_bytes(&group.survival)?;
        Some(series(&group.name, survival, (1, figures.clock_bytes as f64), |point| point.objects))
    });
    let of = format!("Survival of objects {}", title.to_lowercase());
    let curves = curves(Clock::Bytes, &of, series.collect());
    Section::new(title).with_all(table.if_any()).with(curves)
}

/// The table of what a generational collector would see.
fn nurseries(figures: &LifetimeFigures) -> Section {
    let survive = Table::of(&figures.nurseries)
        .text("nursery", |nursery| whole_bytes(nursery.nursery_bytes))
        .figure("collections", |nursery| number(nursery.collections))
        .figure("objects survive", |nursery| nursery.survival_objects.map(percent))
        .figure("bytes survive", |nursery| nursery.survival_bytes.map(percent))
        .figure("promoted per collection", |nursery| nursery.promoted_per_collection_bytes.map(bytes))
        .figure("promoted per MiB", |nursery| nursery.survival_bytes.map(|share| bytes(share * 1_048_576.0)))
        .figure("too large for it", |nursery| whole_bytes(nursery.large.bytes));
    Section::new("Nurseries").with(survive.note(
        "Allocation fills the nursery; objects alive when it is full survive and are promoted. The last nursery, which \
         the run does not fill, is left out. Objects end here when the program frees them; for a collector they end \
         somewhat earlier or later.",
    ))
}

/// Where objects come from that live long or are never freed.
fn call_stacks(profile: Profile) -> Section {
    Section::new("Call stacks").with(flame(profile, Measure::LifetimeNs))
}

/// Never-freed objects by call site.
fn never_freed(figures: &LifetimeFigures) -> Option<Section> {
    let caption = match figures.still_live_by_site.len() {
        all if all > LISTED => format!("the {LISTED} sites with the most bytes of {}", number(all as u64)),
        _ => String::new(),
    };
    let table = Table::of(figures.still_live_by_site.iter().take(LISTED))
        .caption(caption)
        .sites("site", |left| left.name.clone())
        .figure("stacks", |left| number(left.stacks))
        .figure("objects", |left| number(left.held.objects))
        .figure("bytes", |left| whole_bytes(left.held.bytes))
        .figure("of all never freed", |left| part(left.held.bytes, figures.still_live.bytes));
    Some(Section::new("Still live at exit").with(table.if_any()?))
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Event, EventKind};
    use heaptoll_trace_analysis::lifetimes::Lifetimes;
    use heaptoll_trace_analysis::subject::Subject;

    use super::*;

    fn event(kind: EventKind, slot: u32, time_ns: u64) -> Event {
        Event {
            kind,
            moved: false,
            align_log2: 0,
            thread: 0,
            slot,
            site: 0,
            size: 64,
            usable: 64,
            time_ns,
            latency_ns: 0,
        }
    }

    /// Objects that mostly end at the stamp at which they began, and one that lives for 50 ms.
    fn figures(event_time: bool) -> LifetimeFigures {
        let mut lifetimes = Lifetimes::new(By::Size);
        lifetimes.event(&event(EventKind::Malloc, 0, 0));
        for at in 1..100 {
            lifetimes.event(&event(EventKind::Malloc, 1, at * 1_000_000));
            lifetimes.event(&event(EventKind::Free, 1, at * 1_000_000));
        }
        lifetimes.event(&event(EventKind::Free, 0, 150_000_000));
        lifetimes.figures(Subject { event_time, wall_s: 0.2, ..Subject::default() }, None)
    }

    fn over_time(figures: &LifetimeFigures) -> &Survival {
        figures.survival.iter().find(|survival| survival.clock == Clock::Time).expect("in time")
    }

    #[test]
    fn ages_finer_than_the_stamps_are_not_shown() {
        let stamped = figures(false);
        let sentences = quantiles(&stamped, over_time(&stamped));
        assert!(sentences.contains("half are freed within about 1.00 ms"), "{sentences}");
        let exact = figures(true);
        let sentences = quantiles(&exact, over_time(&exact));
        assert!(!sentences.contains("within about"), "{sentences}");
    }

    /// The document once stated that nine tenths never end where one of eight objects did not.
    #[test]
    fn the_share_never_freed_is_given_where_nine_tenths_do_not_end() {
        let mut lifetimes = Lifetimes::new(By::Size);
        for slot in 0..8 {
            lifetimes.event(&event(EventKind::Malloc, slot, 0));
        }
        for slot in 1..8 {
            lifetimes.event(&event(EventKind::Free, slot, 9_000_000));
        }
        let figures = lifetimes.figures(Subject { wall_s: 0.2, ..Subject::default() }, None);
        let sentences = quantiles(&figures, over_time(&figures));
        assert!(sentences.contains(", and 12.5 % are never freed; by their bytes"), "{sentences}");
    }

    #[test]
    fn the_survival_chart_begins_at_the_resolution() {
        let stamped = figures(false);
        let ages = (resolution(&stamped, Clock::Time), 2e8);
        let points = series("x", over_time(&stamped), ages, |point| point.objects).points;
        assert_eq!(points[0].0, 1e-3, "{points:?}");
        assert!(points[0].1 < 2.0, "nearly all have ended by then: {points:?}");
        assert!(
            points.iter().all(|point| point.0 >= 1e-3) && points.is_sorted_by(|a, b| a.0 < b.0),
            "{points:?}"
        );
    }
}
