//! Makes a profile: frames and stacks in any order; those that are the same become one.

use std::collections::HashMap;

use crate::frame::Frame;
use crate::life::Lives;
use crate::measure::Measure;
use crate::profile::{Call, Profile, Subject};

/// A profile that is being made.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    profile: Profile,
    frames: HashMap<Frame, u32>,
    calls: HashMap<Call, u32>,
    /// By innermost call.
    stacks: HashMap<Option<u32>, u32>,
}

impl Builder {
    /// No stacks yet; each will have a value for each of these.
    pub fn new(measures: Vec<Measure>) -> Builder {
        Builder { profile: Profile { measures, ..Profile::default() }, ..Builder::default() }
    }

    /// States which process it is.
    pub fn subject(&mut self, subject: Subject) {
        self.profile.subject = subject;
    }

    /// States when objects lived; their stacks are what [`Builder::stack`] returned.
    pub fn lives(&mut self, lives: Lives) {
        self.profile.lives = Some(lives);
    }

    /// The number of a frame, the same for equal ones.
    pub fn frame(&mut self, frame: Frame) -> u32 {
        if let Some(&number) = self.frames.get(&frame) {
            return number;
        }
        let number = self.profile.frames.len() as u32;
        self.profile.frames.push(frame.clone());
        self.frames.insert(frame, number);
        number
    }

    /// Adds values to a stack of frames by number, innermost first; of measures that do not add up, the largest is kept.
    /// Returns the stack's index among [`Profile::stacks`]. Numbers that are unknown are left out; values that are missing are 0, further ones are left
    /// out. Saturates.
    pub fn stack(&mut self, frames: &[u32], values: &[u64]) -> u32 {
        let call = frames.iter().rev().fold(None, |caller, &frame| self.call(caller, frame).or(caller));
        let each = self.profile.measures.len();
        let next = self.profile.stacks.len() as u32;
        let stack = *self.stacks.entry(call).or_insert(next);
        if stack == next {
            self.profile.stacks.push(call);
            self.profile.values.resize(self.profile.values.len() + each, 0);
        }
        let start = stack as usize * each;
        let sums = self.profile.values[start..start + each].iter_mut();
        for ((sum, value), measure) in sums.zip(values).zip(&self.profile.measures) {
            *sum = if measure.adds_up() { sum.saturating_add(*value) } else { (*sum).max(*value) };
        }
        stack
    }

    fn call(&mut self, caller: Option<u32>, frame: u32) -> Option<u32> {
        if frame as usize >= self.profile.frames.len() {
            return None;
        }
        let call = Call { caller, frame };
        let next = self.profile.calls.len() as u32;
        let number = *self.calls.entry(call).or_insert(next);
        if number == next {
            self.profile.calls.push(call);
        }
        Some(number)
    }

    /// Calls so far: what its memory grows with.
    pub fn calls(&self) -> usize {
        self.profile.calls.len()
    }

    /// The profile.
    pub fn finish(self) -> Profile {
        self.profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(builder: &mut Builder, function: &str) -> u32 {
        builder.frame(Frame { function: function.into(), ..Frame::default() })
    }

    #[test]
    fn equal_stacks_are_one_and_share_their_callers() {
        let mut builder = Builder::new(vec![Measure::AllocatedObjects, Measure::AllocatedBytes]);
        let [a, b, main] = ["a", "b", "main"].map(|name| named(&mut builder, name));
        assert_eq!(named(&mut builder, "b"), b);
        assert_eq!(builder.stack(&[a, main], &[1, 10]), 0);
        assert_eq!(builder.stack(&[b, main], &[1, 5]), 1);
        assert_eq!(builder.stack(&[a, main], &[2, 30]), 0);
        assert_eq!(builder.stack(&[main], &[1, 7]), 2);
        assert_eq!(builder.stack(&[], &[1, 3]), 3);
        assert_eq!(builder.stack(&[99, main, 98], &[1]), 2, "unknown frames are left out");
        let profile = builder.finish();
        assert_eq!((profile.frames().len(), profile.calls().len()), (3, 3));
        let values: Vec<Vec<u64>> = profile.stacks().map(|stack| stack.values.to_vec()).collect();
        assert_eq!(values, [[3, 40], [1, 5], [2, 7], [1, 3]]);
        assert_eq!(profile.total(Measure::AllocatedBytes), 55);
        assert_eq!(profile.total(Measure::EndBytes), 0);
        let names: Vec<String> = profile.frames_of(Some(1)).map(|frame| frame.name().into_owned()).collect();
        assert_eq!(names, ["a", "main"]);
    }

    #[test]
    fn callers_are_before_what_they_call_however_deep() {
        let mut builder = Builder::new(vec![Measure::AllocatedObjects]);
        let frame = named(&mut builder, "f");
        for depth in 0..1000 {
            builder.stack(&vec![frame; depth], &[1]);
        }
        let profile = builder.finish();
        assert_eq!((profile.calls().len(), profile.stacks().len()), (999, 1000));
        for (at, call) in profile.calls().iter().enumerate() {
            assert!(call.caller.is_none_or(|caller| (caller as usize) < at));
        }
    }
}
