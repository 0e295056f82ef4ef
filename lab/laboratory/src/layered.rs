//! Experiments on one layer in front of a manager, over a setting of the layer: each setting is compared with one that
//! does nothing, and that one with the manager alone, which is what the layer itself costs.

use std::marker::PhantomData;

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::side::Side;
use heaptoll_report::document::{Columns, Item, Section, Table};
use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_compare::sweep::{Axis, Lines, Swept, lines};
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::{ratio_cell, without_repeats};

/// Ratios of one stack to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratios {
    /// CPU time.
    pub cpu: Option<Interval>,
    /// Elapsed time.
    pub wall: Option<Interval>,
    /// Peak resident memory.
    pub peak_rss: Option<Interval>,
}

/// What is compared, in the order of the fields of [`Ratios`].
const METRICS: [Metric; 3] = [Metric::Cpu, Metric::Wall, Metric::PeakRss];

impl Ratios {
    /// Those of a comparison; none where it was not made.
    pub fn of(intervals: Option<&[Option<Interval>]>) -> Ratios {
        match intervals {
            Some([cpu, wall, peak_rss]) => Ratios { cpu: *cpu, wall: *wall, peak_rss: *peak_rss },
            _ => Ratios::default(),
        }
    }

    /// Adds their columns to a table.
    pub fn columns<R>(table: Columns<R>, of: impl Fn(&R) -> Ratios) -> Columns<R> {
        let table = table.figure("CPU", |row| ratio_cell(of(row).cpu));
        let table = table.figure("time", |row| ratio_cell(of(row).wall));
        table.figure("peak memory", |row| ratio_cell(of(row).peak_rss))
    }
}

/// A layer with a setting.
pub trait Layer {
    /// The setting.
    type Setting: Copy + Ord;
    /// Medians of a stack.
    type Medians: Copy;
    /// The setting with which the layer changes nothing.
    const BASE: Self::Setting;

    /// A stack's subject, and the setting of the layer, if it is there.
    fn part(stack: &str) -> Option<(String, Option<Self::Setting>)>;
    /// Medians; `None` without a good run.
    fn medians(side: &Side) -> Option<Self::Medians>;
}

/// The axis of a layer's settings. A comparison has its setting as key; what the layer itself costs has none.
pub struct Settings<L>(PhantomData<L>);

impl<L: Layer> Axis for Settings<L> {
    type Place = Option<L::Setting>;
    type Key = Option<L::Setting>;
    type Medians = L::Medians;

    fn part(stack: &str) -> Option<(String, Self::Place)> {
        L::part(stack)
    }

    fn is_varied(place: Self::Place) -> bool {
        place.is_some()
    }

    // A subject with further settings is still the same manager without the layer.
    fn is_shared((manager, place): &(String, Self::Place), subject: &str) -> bool {
        place.is_none() && subject.split(", ").next() == Some(manager)
    }

    fn comparisons(places: &[Self::Place]) -> Vec<(Self::Key, Self::Place, Self::Place)> {
        let base = Some(L::BASE);
        let others = places.iter().filter(|place| **place != base && places.contains(&base));
        let compared = |place: &Self::Place| match place {
            None => (None, base, None),
            setting => (*setting, *setting, base),
        };
        others.map(compared).collect()
    }

    fn series(of: &Side, over: &Side, repetitions: u32) -> Vec<Vec<Option<f64>>> {
        METRICS.map(|metric| of.log_ratios(over, metric, repetitions)).into()
    }

    fn medians(side: &Side) -> Option<L::Medians> {
        L::medians(side)
    }
}

/// The settings of a program's stacks, with their good runs, medians and ratios to the base.
pub fn settings<L: Layer>(
    swept: &Swept<Settings<L>>,
) -> impl Iterator<Item = (L::Setting, u32, Option<L::Medians>, Ratios)> {
    swept.points.iter().filter_map(|point| {
        let setting = point.place?;
        Some((setting, point.good, point.medians, Ratios::of(swept.of(Some(setting)))))
    })
}

/// Medians of the manager without the layer.
pub fn plain<L: Layer>(swept: &Swept<Settings<L>>) -> Option<L::Medians> {
    swept.points.iter().find(|point| point.place.is_none())?.medians
}

/// The managers to put a layer in front of: those requested, or `usual` ones, each once.
///
/// # Errors
/// One is unknown, or has a layer already.
pub fn managers(
    requested: &[String],
    usual: &[&str],
    known: &[Manager],
    command: &str,
    context: &Context,
) -> Result<Vec<Manager>, Failure> {
    stand_ins::note(known, requested, context.messages);
    let chosen = match requested {
        [] => usual.iter().filter_map(|name| manager::find(known, name).ok()).collect(),
        _ => without_repeats(manager::choose(known, requested.iter().map(String::as_str))?),
    };
    match chosen.iter().find(|manager| !manager.layers.is_empty()) {
        None => Ok(chosen),
        Some(manager) => Err(Failure::Usage(format!(
            "-m {}: name the manager alone; `heaptoll {command}` puts the layer in front of it",
            manager.name
        ))),
    }
}

/// What the layer itself costs: a row a program and manager, then the means.
pub fn layer_section<'a>(
    title: &str,
    text: &str,
    rows: impl Iterator<Item = (&'a str, &'a str, Ratios)>,
) -> Option<Section> {
    let table = Table::of(rows).text("program", |row| row.0).text("manager", |row| row.1);
    Some(Section::new(title).state(text).with(Ratios::columns(table, |row| row.2).if_any()?))
}

/// CPU and memory by setting, a line a manager, with bands. `of` has manager and setting by index; `shown` has the title of
/// its chart, and the title of the axis of settings.
pub fn charts(
    shown: [&str; 3],
    (places, base): (Vec<String>, usize),
    managers: &[String],
    of: &dyn Fn(usize, usize) -> Option<Ratios>,
) -> [Item; 2] {
    let [what, axis, over] = shown;
    let chart = |title: &str, metric: fn(&Ratios) -> Option<Interval>| {
        let shown = Lines {
            title: format!("{title}: {what}"),
            caption: format!("Ratios to {over}; the bands are their intervals."),
            axes: [axis.into(), format!("ratio to {over}")],
            places: places.clone(),
            base,
            names: managers.iter().map(String::as_str).collect(),
            banded: true,
        };
        lines(shown, &|manager, place| of(manager, place).and_then(|ratios| metric(&ratios)))
    };
    [chart("CPU", |ratios| ratios.cpu), chart("Peak memory", |ratios| ratios.peak_rss)]
}
