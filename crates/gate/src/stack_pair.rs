//! The call stacks of two builds, each with its values in both: what a flame graph of differences shows. Stacks that are
//! joined have the same frames in both.

use heaptoll_profiles::{Builder, Frame, Measure, Profile};
use heaptoll_report::document::{Flame, FlameBase, Item};

/// Two profiles that have the same measures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackPair {
    /// Of the base.
    pub base: Profile,
    /// Of the new build.
    pub new: Profile,
}

/// A pair that is being made.
pub struct PairBuilder {
    base: Builder,
    new: Builder,
}

impl PairBuilder {
    /// No stacks yet; each will have a value for each of these.
    pub fn new(measures: Vec<Measure>) -> PairBuilder {
        PairBuilder { base: Builder::new(measures.clone()), new: Builder::new(measures) }
    }

    /// Adds a stack, innermost frame first, with its values in the base and in the new build.
    pub fn add(&mut self, stack: &[Frame], base: &[u64], new: &[u64]) {
        for (builder, values) in [(&mut self.base, base), (&mut self.new, new)] {
            if values.iter().any(|value| *value > 0) {
                let frames: Vec<u32> = stack.iter().map(|frame| builder.frame(frame.clone())).collect();
                builder.stack(&frames, values);
            }
        }
    }

    /// The pair.
    pub fn finish(self) -> StackPair {
        StackPair { base: self.base.finish(), new: self.new.finish() }
    }
}

impl StackPair {
    /// The flame graph of what differs. It begins with this measure; `names` are those of both builds.
    pub fn flame(&self, title: &str, caption: &str, first: Measure, names: [&str; 2]) -> Item {
        Item::Flame(Flame {
            title: title.into(),
            caption: caption.into(),
            profile: self.new.clone(),
            first,
            base: Some(Box::new(FlameBase { profile: self.base.clone(), names: names.map(str::to_owned) })),
        })
    }
}
