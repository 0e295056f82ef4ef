//! The axis of one setting of a layer or manager: each value is compared with the base, and a base that is a value
//! itself with the manager without the setting, which is what the layer costs where it changes nothing.

use crate::comparison::{Metric, Ratios};
use crate::side::Side;
use crate::sweep::{Axis, Swept};

/// What is compared, in the order of the fields of [`Ratios`].
const METRICS: [Metric; 3] = [Metric::Cpu, Metric::Wall, Metric::PeakRss];

/// A stack's subject, and the value of the setting, if it is set.
type Part<P> = Box<dyn Fn(&str) -> Option<(String, Option<P>)>>;

/// The axis. A comparison has its value as key; that of the base with the manager has none.
pub struct Settings<P, M> {
    /// What a stack is.
    pub part: Part<P>,
    /// The value that others are compared with; the manager without the setting where there is none.
    pub base: Option<P>,
    /// Medians of a stack; `None` without a good run.
    pub medians: fn(&Side) -> Option<M>,
}

impl<P: Copy + Ord, M: Copy> Axis for Settings<P, M> {
    type Place = Option<P>;
    type Key = Option<P>;
    type Medians = M;

    fn part(&self, stack: &str) -> Option<(String, Option<P>)> {
        (self.part)(stack)
    }

    fn is_varied(&self, place: Option<P>) -> bool {
        place.is_some()
    }

    // A subject with further settings is still the same manager without the layer.
    fn is_shared(&self, (manager, place): &(String, Option<P>), subject: &str) -> bool {
        place.is_none() && subject.split(", ").next() == Some(manager)
    }

    fn comparisons(&self, places: &[Option<P>]) -> Vec<(Option<P>, Option<P>, Option<P>)> {
        let base = self.base;
        let others = places.iter().filter(|place| **place != base && places.contains(&base));
        let compared = |place: &Option<P>| match place {
            None => (None, base, None),
            value => (*value, *value, base),
        };
        others.map(compared).collect()
    }

    fn series(&self, of: &Side, over: &Side, repetitions: u32) -> Vec<Vec<Option<f64>>> {
        METRICS.map(|metric| of.log_ratios(over, metric, repetitions)).into()
    }

    fn medians(&self, side: &Side) -> Option<M> {
        (self.medians)(side)
    }
}

impl<P: Copy + Ord, M: Copy> Swept<Settings<P, M>> {
    /// The values of the program's stacks, with their good runs, medians and ratios to the base.
    pub fn settings(&self) -> impl Iterator<Item = (P, u32, Option<M>, Ratios)> {
        self.points.iter().filter_map(|point| {
            let value = point.place?;
            Some((value, point.good, point.medians, Ratios::of(self.of(Some(value)))))
        })
    }

    /// Medians of the manager without the setting.
    pub fn plain(&self) -> Option<M> {
        self.points.iter().find(|point| point.place.is_none())?.medians
    }
}
