//! Costs of the calls of one routine, in total and by size class.

use heaptoll_reftrace::Clock;

use crate::class::{Request, SizeClass};
use crate::spread::Spread;

/// Calls and their cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallCosts {
    /// Inclusive, with collections.
    pub cost: Clock,
    /// Instructions of it that collections took.
    pub collector: u64,
    /// Instructions, inclusive, call by call.
    pub spread: Spread,
}

impl CallCosts {
    fn add(&mut self, cost: Clock, collector: Clock) {
        self.cost = self.cost.plus(cost);
        self.collector = self.collector.saturating_add(collector.instructions);
        self.spread.add(cost.instructions);
    }

    /// Adds the calls of another.
    pub fn merge(&mut self, other: &CallCosts) {
        self.cost = self.cost.plus(other.cost);
        self.collector = self.collector.saturating_add(other.collector);
        self.spread.merge(&other.spread);
    }
}

/// Calls with a special outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Returned no block although bytes were requested.
    pub failed: u64,
    /// Had no block as argument: `free(NULL)`, `realloc(NULL, n)`.
    pub null: u64,
    /// Had an unknown block as argument.
    pub unknown: u64,
    /// Were left by `longjmp` or the like.
    pub abandoned: u64,
}

/// Costs by index of size class; a class without calls has no entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classes(Vec<Option<Box<CallCosts>>>);

impl Classes {
    fn add(&mut self, request: Request, cost: Clock, collector: Clock) {
        let index = SizeClass::index(request);
        if index >= self.0.len() {
            self.0.resize(index + 1, None);
        }
        self.0[index].get_or_insert_default().add(cost, collector);
    }

    /// Adds the calls of another.
    pub fn merge(&mut self, other: &Classes) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), None);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
    }

    /// The classes that had calls, in order.
    pub fn iter(&self) -> impl Iterator<Item = (SizeClass, &CallCosts)> {
        let classes = self.0.iter().enumerate();
        classes.filter_map(|(index, costs)| Some((SizeClass::of(index), costs.as_deref()?)))
    }

    /// The sum of all classes.
    pub fn sum(&self) -> CallCosts {
        let mut sum = CallCosts::default();
        self.iter().for_each(|(_, costs)| sum.merge(costs));
        sum
    }
}

/// One routine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Calls that did what the routine is for.
    pub proper: Classes,
    /// Calls of a routine that resizes blocks which made one from nothing: `realloc(NULL, n)`.
    pub making: Classes,
    /// Calls with a special outcome.
    pub odd: Oddities,
    /// Cost of abandoned calls; it is in no class.
    pub abandoned: Clock,
}

impl Tally {
    /// Counts a call; `making` if it makes a block though the routine is there to resize one.
    pub fn add(&mut self, request: Request, making: bool, cost: Clock, collector: Clock) {
        let classes = if making { &mut self.making } else { &mut self.proper };
        classes.add(request, cost, collector);
    }

    /// All calls.
    pub fn classes(&self) -> Classes {
        let mut all = self.proper.clone();
        all.merge(&self.making);
        all
    }
}
