//! State of an object until its end is known.
//!
//! A realloc keeps the object and changes its size, so a lifetime is a sequence of pieces of one size each. In which
//! phase an object was since its last touch becomes known only with the next touch, or at the end: such pieces wait.

use crate::space::{Phase, Spaces};
use crate::stamp::Stamp;

/// Most pieces that wait; of more, neighbours are merged, which blurs the curve over time, and no sum.
const WAITING: usize = 64;

/// Receives results: this many bytes were in a phase from one instant to another.
pub trait PhaseSink {
    /// Adds a rectangle of bytes and time to a phase.
    fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp);
}

/// An object, or a block that was freed and that its collector has not allocated again.
#[derive(Debug, Clone, Default)]
pub struct Lifetime {
    /// Requested bytes.
    pub size: u64,
    /// Objects are numbered in order of allocation: the higher, the younger.
    pub serial: u64,
    /// Start of its present size; of a freed block, the time of the free.
    pub from: Stamp,
    /// First touch at this size.
    first: Stamp,
    /// Last touch at this size.
    last: Stamp,
    /// Segment of references in which it was touched last (see [`crate::drag`]).
    pub segment: u64,
    /// Position of the first touch in that segment.
    pub first_at: u32,
    /// Position of the last touch in that segment.
    pub last_at: u32,
    /// Call site that allocated it; 0 for none.
    pub site: u32,
    /// Whether it was touched at this size.
    touched: bool,
    /// Whether it is a freed block.
    pub freed: bool,
    /// Whether it was freed by a realloc, not the program.
    pub moved: bool,
    /// Collections that had ended when it was allocated, or freed.
    pub collections: u64,
    past: Option<Box<Past>>,
}

/// The lifetime before the present size.
#[derive(Debug, Clone, Default)]
struct Past {
    known: Spaces,
    touched: bool,
    last: Stamp,
    waiting: Vec<(u64, Stamp, Stamp)>,
    /// Waiting pieces: bytes times each clock, exactly.
    waiting_space: [u128; 2],
}

/// The result of a lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its space-time.
    pub spaces: Spaces,
    /// Whether it was ever touched.
    pub touched: bool,
}

impl Lifetime {
    /// An object allocated now.
    pub fn new(size: u64, serial: u64, now: Stamp, site: u32, collections: u64) -> Lifetime {
        Lifetime { size, serial, from: now, site, collections, segment: u64::MAX, ..Lifetime::default() }
    }

    /// A block freed now, which may not be reclaimed yet.
    pub fn freed(size: u64, site: u32, now: Stamp, collections: u64, moved: bool) -> Lifetime {
        Lifetime { freed: true, moved, ..Lifetime::new(size, 0, now, site, collections) }
    }

    /// Records touches from `first` to `last`.
    #[inline(always)]
    pub fn touch(&mut self, first: Stamp, last: Stamp) {
        if !self.touched {
            self.first = first;
            self.touched = true;
        }
        self.last = last;
    }

    /// Time of the last touch, if any.
    pub fn last_touch(&self) -> Option<Stamp> {
        let before = self.past.as_ref().filter(|past| past.touched).map(|past| past.last);
        if self.touched { Some(self.last) } else { before }
    }

    /// Changes its size from now on.
    pub fn resize(&mut self, size: u64, now: Stamp, sink: &mut impl PhaseSink) {
        self.put_by(now, sink);
        self.size = size;
        self.from = now;
    }

    /// Moves the time at the present size to the past.
    fn put_by(&mut self, now: Stamp, sink: &mut impl PhaseSink) {
        let mut past = self.past.take().unwrap_or_default();
        if std::mem::take(&mut self.touched) {
            past.settle(if past.touched { Phase::Use } else { Phase::Lag }, sink);
            if past.touched {
                past.take(Phase::Use, self.size, self.from, self.last, sink);
            } else {
                past.take(Phase::Lag, self.size, self.from, self.first, sink);
                past.take(Phase::Use, self.size, self.first, self.last, sink);
            }
            past.touched = true;
            past.last = self.last;
            past.wait(self.size, self.last, now);
        } else {
            past.wait(self.size, self.from, now);
        }
        self.past = Some(past);
    }

    /// Ends the lifetime.
    pub fn end(mut self, now: Stamp, sink: &mut impl PhaseSink) -> Ended {
        if self.past.is_some() {
            self.put_by(now, sink);
            let mut past = self.past.take().unwrap_or_default();
            past.settle(if past.touched { Phase::Drag } else { Phase::Void }, sink);
            return Ended { spaces: past.known, touched: past.touched };
        }
        let mut spaces = Spaces::default();
        let mut take = |phase: Phase, from: Stamp, to: Stamp| {
            spaces.add(phase, self.size, from, to);
            sink.take(phase, self.size, from, to);
        };
        if self.touched {
            take(Phase::Lag, self.from, self.first);
            take(Phase::Use, self.first, self.last);
            take(Phase::Drag, self.last, now);
        } else {
            take(Phase::Void, self.from, now);
        }
        Ended { spaces, touched: self.touched }
    }
}

impl Past {
    fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp, sink: &mut impl PhaseSink) {
        self.known.add(phase, bytes, from, to);
        sink.take(phase, bytes, from, to);
    }

    fn wait(&mut self, bytes: u64, from: Stamp, to: Stamp) {
        for (clock, space) in self.waiting_space.iter_mut().enumerate() {
            *space += u128::from(bytes) * u128::from(to.0[clock].saturating_sub(from.0[clock]));
        }
        if self.waiting.len() == WAITING {
            self.merge_shortest();
        }
        self.waiting.push((bytes, from, to));
    }

    /// Merges the two neighbours with the shortest duration.
    fn merge_shortest(&mut self) {
        let length = |at: &usize| {
            let (from, to) = (self.waiting[*at].1, self.waiting[*at + 1].2);
            (to.0[0].saturating_sub(from.0[0]), to.0[1].saturating_sub(from.0[1]))
        };
        let Some(at) = (0..self.waiting.len().saturating_sub(1)).min_by_key(length) else { return };
        let (right, _, to) = self.waiting.remove(at + 1);
        let (left, from, middle) = self.waiting[at];
        self.waiting[at] = (mean(left, right, from, middle, to), from, to);
    }

    fn settle(&mut self, phase: Phase, sink: &mut impl PhaseSink) {
        for (bytes, from, to) in self.waiting.drain(..) {
            sink.take(phase, bytes, from, to);
        }
        for (space, waiting) in self.known.0.iter_mut().zip(&mut self.waiting_space) {
            space.add(phase, std::mem::take(waiting));
        }
    }
}

/// Average of bytes over the clock of instructions, or of bytes if that one did not advance.
fn mean(left: u64, right: u64, from: Stamp, middle: Stamp, to: Stamp) -> u64 {
    let clock = usize::from(from.0[0] == to.0[0]);
    let first = u128::from(middle.0[clock].saturating_sub(from.0[clock]));
    let second = u128::from(to.0[clock].saturating_sub(middle.0[clock]));
    let area = u128::from(left) * first + u128::from(right) * second;
    match first + second {
        0 => left.max(right),
        whole => ((area + whole / 2) / whole) as u64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stamp::Clock;

    #[derive(Default)]
    struct Sum(Spaces);

    impl PhaseSink for Sum {
        fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp) {
            self.0.add(phase, bytes, from, to);
        }
    }

    fn at(clock: u64) -> Stamp {
        Stamp([clock, 3 * clock])
    }

    /// The space-time of a lifetime of `(size, from, touches)` pieces that ends at `end`, by evaluating every instant.
    fn slowly(pieces: &[(u64, u64, Vec<u64>)], end: u64) -> (Spaces, bool) {
        let touches: Vec<u64> = pieces.iter().flat_map(|piece| &piece.2).copied().collect();
        let (first, last) = (touches.iter().min(), touches.iter().max());
        let mut spaces = Spaces::default();
        for (number, (size, from, _)) in pieces.iter().enumerate() {
            let to = pieces.get(number + 1).map_or(end, |next| next.1);
            for instant in *from..to {
                let phase = match (first, last) {
                    (Some(first), _) if instant < *first => Phase::Lag,
                    (_, Some(last)) if instant < *last => Phase::Use,
                    (Some(_), _) => Phase::Drag,
                    _ => Phase::Void,
                };
                spaces.add(phase, *size, at(instant), at(instant + 1));
            }
        }
        (spaces, !touches.is_empty())
    }

    proptest! {
        #[test]
        fn lifetimes_are_split_into_phases_as_by_hand(
            pieces in prop::collection::vec((0_u64..100, 0_u64..30, prop::collection::vec(0_u64..30, 0..3)), 1..8),
            length in 0_u64..30,
        ) {
            let mut start = 0;
            let pieces: Vec<(u64, u64, Vec<u64>)> = pieces.iter().map(|(size, before, touches)| {
                let from = start;
                start += before;
                let mut touches: Vec<u64> = touches.iter().map(|touch| from + touch % (before + 1)).collect();
                touches.sort_unstable();
                (*size, from, touches)
            }).collect();
            let mut sum = Sum::default();
            let mut lifetime = Lifetime::new(pieces[0].0, 1, at(0), 0, 0);
            for (number, (size, from, touches)) in pieces.iter().enumerate() {
                if number > 0 {
                    lifetime.resize(*size, at(*from), &mut sum);
                }
                touches.iter().for_each(|touch| lifetime.touch(at(*touch), at(*touch)));
            }
            let end = start + length;
            let (expected, touched) = slowly(&pieces, end);
            let last = pieces.iter().rev().find_map(|piece| piece.2.last());
            prop_assert_eq!(lifetime.last_touch(), last.map(|touch| at(*touch)));
            let ended = lifetime.end(at(end), &mut sum);
            prop_assert_eq!(ended, Ended { spaces: expected, touched });
            prop_assert_eq!(sum.0, expected);
        }
    }

    #[test]
    fn many_reallocs_of_what_is_not_touched_take_bounded_memory_and_lose_nothing() {
        let mut sum = Sum::default();
        let mut lifetime = Lifetime::new(1, 1, at(0), 0, 0);
        let mut expected = 0;
        for round in 1..10_000_u64 {
            expected += u128::from(lifetime.size);
            lifetime.resize(round % 97 + 1, at(round), &mut sum);
        }
        assert!(lifetime.past.as_ref().is_some_and(|past| past.waiting.len() <= WAITING));
        let ended = lifetime.end(at(9999), &mut sum);
        assert_eq!(ended.spaces.on(Clock::Instructions).void, expected);
        let blurred = sum.0.on(Clock::Instructions).void;
        assert!(blurred.abs_diff(expected) * 50 < expected, "{blurred} instead of {expected}");
    }
}
