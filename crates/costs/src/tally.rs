//! What the calls of one routine came to, all together and by size class.

use heaptoll_reference::Clock;

use crate::class::{Asked, SizeClass};
use crate::spread::Spread;

/// Calls and what they cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Costed {
    /// Inclusive, collections too.
    pub cost: Clock,
    /// Instructions of it that collections took.
    pub collector: u64,
    /// Instructions, inclusive, call by call.
    pub spread: Spread,
}

impl Costed {
    fn add(&mut self, cost: Clock, collector: Clock) {
        self.cost = self.cost.plus(cost);
        self.collector = self.collector.saturating_add(collector.instructions);
        self.spread.add(cost.instructions);
    }

    /// Adds the calls of another.
    pub fn merge(&mut self, other: &Costed) {
        self.cost = self.cost.plus(other.cost);
        self.collector = self.collector.saturating_add(other.collector);
        self.spread.merge(&other.spread);
    }
}

/// Calls that did not do what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Gave no block although bytes were asked for.
    pub failed: u64,
    /// Were given no block: `free(NULL)`, `realloc(NULL, n)`.
    pub null: u64,
    /// Were given a block that is not known.
    pub unknown: u64,
    /// Were left by `longjmp` or the like.
    pub abandoned: u64,
}

/// Costs by index of size class; what has no calls is not there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classes(Vec<Option<Box<Costed>>>);

impl Classes {
    fn add(&mut self, asked: Asked, cost: Clock, collector: Clock) {
        let index = SizeClass::index(asked);
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

    /// Those that had calls, in order.
    pub fn iter(&self) -> impl Iterator<Item = (SizeClass, &Costed)> {
        let classes = self.0.iter().enumerate();
        classes.filter_map(|(index, costed)| Some((SizeClass::of(index), costed.as_deref()?)))
    }

    /// All together.
    pub fn sum(&self) -> Costed {
        let mut sum = Costed::default();
        self.iter().for_each(|(_, costed)| sum.merge(costed));
        sum
    }
}

/// One routine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Calls that did what the routine is for.
    pub proper: Classes,
    /// Calls of a routine that resizes blocks that made one from nothing: `realloc(NULL, n)`.
    pub making: Classes,
    /// Calls that did not do what they are for.
    pub odd: Oddities,
    /// What abandoned calls cost; it is in no class.
    pub abandoned: Clock,
}

impl Tally {
    /// Counts a call; `making` when it makes a block though the routine is there to resize one.
    pub fn add(&mut self, asked: Asked, making: bool, cost: Clock, collector: Clock) {
        let classes = if making { &mut self.making } else { &mut self.proper };
        classes.add(asked, cost, collector);
    }

    /// All calls.
    pub fn classes(&self) -> Classes {
        let mut all = self.proper.clone();
        all.merge(&self.making);
        all
    }
}
