//! The charts of `heaptoll exact drag`.

use heaptoll_drag::timeline::Interval;
use heaptoll_drag::{Clock, Figures};
use heaptoll_profiles::{self as profiles, Measure, Phase, Profile};
use heaptoll_report::document::{Axis, Chart, Flame, Form, Item, Series};

use super::figures::Row;

/// Bars of sites.
const SITES: usize = 15;
/// Characters of a site's name at a bar.
const NAME: usize = 40;
const MIB: f64 = (1 << 20) as f64;

/// The bytes held over time, under the first manager and under every collector that lets freed blocks wait.
pub fn over_time(rows: &[(&Row, &Figures)], clock: Clock) -> Vec<Item> {
    let waits = |figures: &Figures| figures.collector.is_some_and(|collector| !collector.reclaims_at_free);
    let shown = rows.iter().enumerate().filter(|(at, (_, figures))| *at == 0 || waits(figures));
    shown.filter_map(|(_, (row, figures))| one(row, figures, clock)).collect()
}

fn one(row: &Row, figures: &Figures, clock: Clock) -> Option<Item> {
    let samples = figures.over_time.on(clock);
    if samples.is_empty() || figures.all.all.objects == 0 {
        return None;
    }
    let series = |name: &str, of: fn(&Interval) -> f64| Series {
        name: name.into(),
        points: samples
            .iter()
            .map(|sample| (sample.from as f64 / 2.0 + sample.to as f64 / 2.0, of(sample) / MIB))
            .collect(),
        ..Series::default()
    };
    let mut all = vec![
        series("use", |sample| sample.use_bytes),
        series("lag", |sample| sample.lag_bytes),
        series("drag", |sample| sample.drag_bytes),
        series("void", |sample| sample.void_bytes),
    ];
    if samples.iter().any(|sample| sample.unreclaimed_bytes > 0.0) {
        all.push(series("freed, not reclaimed", |sample| sample.unreclaimed_bytes));
    }
    Some(Item::Chart(Chart {
        title: format!("What the objects are in, under {}", row.manager),
        caption: "Use: between first and last touch. Lag: not touched yet. Drag: not touched again. Void: \
                  never touched."
            .into(),
        form: Form::Stacked,
        x: Axis::even(match clock {
            Clock::Instructions => "instructions of the program",
            Clock::Bytes => "bytes allocated",
        }),
        y: Axis::even("requested bytes, MiB"),
        series: all,
    }))
}

/// Drag and void by site.
pub fn sites(figures: &Figures, clock: Clock) -> Option<Item> {
    let end = super::sections::end(figures, clock).max(1) as f64;
    let shown = &figures.sites[..figures.sites.len().min(SITES)];
    if shown.is_empty() {
        return None;
    }
    let series = |name: &str, of: fn(&heaptoll_drag::space::Space) -> u128| Series {
        name: name.into(),
        points: shown
            .iter()
            .enumerate()
            .map(|(at, site)| (at as f64, of(site.space(clock)) as f64 / end / MIB))
            .collect(),
        ..Series::default()
    };
    let name = |name: &String| match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.clone(),
    };
    Some(Item::Chart(Chart {
        title: "Drag and void by call site".into(),
        caption: "Bytes kept after the last touch, or never touched, on average over the run.".into(),
        form: Form::Bars,
        x: Axis { names: shown.iter().map(|site| name(&site.name)).collect(), ..Axis::default() },
        y: Axis::even("MiB on average"),
        series: vec![series("drag", |space| space.drag), series("void", |space| space.void)],
    }))
}

/// All call stacks.
pub fn stacks(profile: Profile, clock: Clock) -> Item {
    let (times, clock) = match clock {
        Clock::Instructions => ("1000 instructions of the program", profiles::Clock::Instructions),
        Clock::Bytes => ("KiB allocated", profiles::Clock::Bytes),
    };
    Item::Flame(Flame {
        title: "Call stacks by what their objects are in".into(),
        caption: format!(
            "An object counts for the call stack that allocated it. Drag, void, lag and use: its bytes times \
             the {times} in that phase, rounded. A resized object has its last size."
        ),
        profile,
        first: Measure::Space(Phase::Drag, clock),
        base: None,
    })
}
