//! The charts of `heaptoll exact locality`: misses over sizes on logarithmic axes.

use heaptoll_locality::forest::Associative;
use heaptoll_locality::over_time::Sample;
use heaptoll_locality::simulation::Accessor;
use heaptoll_locality::study::{Cause, PLACEMENT_WAYS, Point, Row, Study};
use heaptoll_report::document::{Axis, Chart, Form, Series};

const KIB: f64 = 1024.0;

/// A curve a manager.
fn of_all(study: &Study, points: impl Fn(&Row) -> Vec<(f64, f64)>) -> Vec<Series> {
    study.rows.iter().map(|row| Series::of(row.about.manager.clone(), points(row))).collect()
}

/// Curves that are flat from their last point on, drawn to where the longest ends.
fn to_one_end(mut series: Vec<Series>) -> Vec<Series> {
    let end = series.iter().filter_map(|one| one.points.last()).map(|point| point.0).fold(0.0, f64::max);
    for one in &mut series {
        if let Some(&(x, y)) = one.points.last()
            && x < end
        {
            one.points.push((end, y));
        }
    }
    series
}

/// `None` where there is nothing to see.
fn drawn(chart: Chart) -> Option<Chart> {
    chart.series.iter().any(|series| !series.points.is_empty()).then_some(chart)
}

fn curve(row: &Row, points: &[Point]) -> Vec<(f64, f64)> {
    points.iter().map(|point| (point.bytes as f64 / KIB, row.per_thousand(point.misses))).collect()
}

/// Misses of fully associative caches.
pub fn fully_associative(study: &Study) -> Option<Chart> {
    drawn(Chart {
        title: "Misses of every cache size, fully associative".into(),
        caption: "A steep fall is a working set that fits from there on. If a curve is flat, more cache \
                  gains nothing. At the right end only first touches are left."
            .into(),
        form: Form::Lines,
        x: Axis::log("cache, KiB"),
        y: Axis::log("misses per 1000 references of the program"),
        series: to_one_end(of_all(study, |row| curve(row, &row.fully_associative))),
    })
}

fn of_ways(row: &Row, ways: u32) -> Vec<(f64, f64)> {
    let of = |cache: &Associative| (cache.bytes as f64 / KIB, row.per_thousand(cache.misses.total()));
    let mut points: Vec<(f64, f64)> =
        row.associative.iter().filter(|cache| cache.ways == ways).map(of).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Misses of direct-mapped caches: Zorn's Figure 7.
pub fn direct_mapped(study: &Study) -> Option<Chart> {
    drawn(Chart {
        title: "Misses of direct-mapped caches".into(),
        caption: "If managers differ here and not above, addresses collide: blocks whose addresses agree in \
                  their lower bits share a set. (Figure 7 of Zorn 1992.)"
            .into(),
        form: Form::Lines,
        x: Axis::log("cache, KiB"),
        y: Axis::log("misses per 1000 references of the program"),
        series: of_all(study, |row| of_ways(row, 1)),
    })
}

/// What more ways are worth under the baseline.
pub fn ways(study: &Study) -> Option<Chart> {
    let row = study.rows.first()?;
    let mut series: Vec<Series> = [(1, "direct-mapped"), (2, "2 ways"), (4, "4 ways"), (8, "8 ways")]
        .into_iter()
        .map(|(ways, name)| Series::of(name, of_ways(row, ways)))
        .collect();
    series.push(Series::of("fully associative", curve(row, &row.fully_associative)));
    drawn(Chart {
        title: format!("What associativity gains under {}", row.about.manager),
        caption: "The distance to the fully associative curve is what collisions cost.".into(),
        form: Form::Lines,
        x: Axis::log("cache, KiB"),
        y: Axis::log("misses per 1000 references of the program"),
        series,
    })
}

/// Page faults of every memory size: Zorn's Figure 5.
pub fn memories(study: &Study) -> Option<Chart> {
    drawn(Chart {
        title: "Page faults of every memory size".into(),
        caption: format!(
            "With N pages this is also a TLB of N entries: {} KiB of memory are one entry. (Figure 5 of Zorn 1992.)",
            study.page_bytes as f64 / KIB
        ),
        form: Form::Lines,
        x: Axis::log("memory, KiB"),
        y: Axis::log("faults"),
        series: to_one_end(of_all(study, |row| {
            row.memories.iter().map(|point| (point.bytes as f64 / KIB, point.misses as f64)).collect()
        })),
    })
}

/// The misses by the accessor that made the reference.
pub fn by_owner(row: &Row) -> Option<Chart> {
    let series =
        Accessor::ALL.into_iter().filter(|accessor| *row.references.get(*accessor) > 0).map(|accessor| {
            Series {
                name: accessor.name().into(),
                points: row
                    .fully_associative
                    .iter()
                    .map(|point| (point.bytes as f64 / KIB, row.per_thousand(*point.by.get(accessor))))
                    .collect(),
                ..Series::default()
            }
        });
    drawn(Chart {
        title: format!("Whose misses they are under {}", row.about.manager),
        caption: "Fully associative caches. Each curve shows the references of one of them, all in one \
                  cache."
            .into(),
        form: Form::Lines,
        x: Axis::log("cache, KiB"),
        y: Axis::log("misses per 1000 references of the program"),
        series: series.collect(),
    })
}

/// What each manager has more than the baseline, by cause, over sizes.
pub fn placement(study: &Study) -> Vec<Chart> {
    let [baseline, others @ ..] = &study.rows[..] else { return vec![] };
    let of = |row: &Row| {
        let caches = &row.placement.as_ref()?.caches;
        let line = |name: &str, part: fn(&Cause) -> Option<i64>| Series {
            name: name.into(),
            points: caches
                .iter()
                .filter_map(|cause| {
                    let more = part(cause)?;
                    let rate = row.per_thousand(more.unsigned_abs()) * more.signum() as f64;
                    Some((cause.bytes as f64 / KIB, rate))
                })
                .collect(),
            ..Series::default()
        };
        let mut series = vec![
            line("all together", |cause| Some(cause.more?.total())),
            line("placement", |cause| Some(cause.more?.placement)),
            line("pollution", |cause| Some(cause.more?.pollution)),
            line("allocator's own", |cause| Some(cause.more?.allocator)),
        ];
        if caches.iter().any(|cause| cause.more.is_some_and(|more| more.collector != 0)) {
            series.push(line("collector's own", |cause| Some(cause.more?.collector)));
        }
        drawn(Chart {
            title: format!(
                "Why the misses of {} differ from {}'s",
                row.about.manager, baseline.about.manager
            ),
            caption: format!(
                "Misses that it has more (above zero) or less (below) in caches of {PLACEMENT_WAYS} ways. \
                 Placement: misses that come from where the program's objects are. The parts add up to the \
                 total."
            ),
            form: Form::Lines,
            x: Axis::log("cache, KiB"),
            y: Axis::even("more misses per 1000 references of the program"),
            series,
        })
    };
    others.iter().filter_map(of).collect()
}

/// Working sets over the run, and over windows.
pub fn over_time(study: &Study) -> Vec<Chart> {
    let samples = |row: &Row, of: fn(&Sample) -> u64, bytes: u64| -> Vec<(f64, f64)> {
        let Some(scale) = &row.over_time else { return vec![] };
        let at = |index: usize| (index + 1) as f64 * scale.window as f64 / 1e6;
        let sample = |(index, sample): (usize, &Sample)| (at(index), (of(sample) * bytes) as f64 / KIB);
        scale.samples.iter().enumerate().map(sample).collect()
    };
    let window = study.rows.iter().find_map(|row| Some(row.over_time.as_ref()?.window));
    let over = |title: &str, caption: &str, of: fn(&Sample) -> u64, bytes: u64| Chart {
        title: title.into(),
        caption: caption.into(),
        form: Form::Steps,
        x: Axis::even("millions of references of the program"),
        y: Axis::even("KiB"),
        series: of_all(study, |row| samples(row, of, bytes)),
    };
    let within = format!(
        "Memory touched by anyone in the last {} references of the program (Denning's working set). The \
         clock is the program's, so managers can be compared at the same point of the run.",
        heaptoll_report::format::count(window.unwrap_or_default() as f64)
    );
    let (line, page) = (study.line_bytes, study.page_bytes);
    [
        over("Working set in lines", &within, |sample| sample.lines, line),
        over("Working set in pages", &within, |sample| sample.pages, page),
        over(
            "Pages touched so far",
            "A curve that keeps rising is memory that is taken and not reused.",
            |sample| sample.pages_so_far,
            page,
        ),
        Chart {
            title: "Mean working set of every window".into(),
            caption: "Pages touched within a window, on average over the run.".into(),
            form: Form::Lines,
            x: Axis::log("window, references of the program"),
            y: Axis::log("KiB"),
            series: of_all(study, |row| {
                let point = |one: &heaptoll_locality::study::Window| {
                    (one.window as f64, one.mean_pages * page as f64 / KIB)
                };
                row.windows.iter().map(point).collect()
            }),
        },
    ]
    .into_iter()
    .filter_map(drawn)
    .collect()
}
