//! What is kept of an object until its end is known.
//!
//! A realloc keeps the object and changes its size, so a life is a row of pieces of one size each. What an object was in
//! since its last touch is known only by the next one, or by the end: such pieces wait.

use crate::space::{Phase, Spaces};
use crate::stamp::Stamp;

/// Pieces that wait; of more, neighbours are put together, which blurs the curve over time, and no sum.
const WAITING: usize = 64;

/// Takes what is known: so many bytes were in a phase from one moment to another.
pub trait Takes {
    /// Takes it.
    fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp);
}

/// An object, or a block that was freed and that its collector has not given out again.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// Requested bytes.
    pub size: u64,
    /// Objects are numbered as they are made: the higher, the younger.
    pub serial: u64,
    /// Since when it has this size; of a freed block, when it was freed.
    pub from: Stamp,
    /// First touch at this size.
    first: Stamp,
    /// Last touch at this size.
    last: Stamp,
    /// Stretch of references in which it was touched last (see [`crate::drag`]), and where in it first and last.
    pub stretch: u64,
    /// The first.
    pub first_at: u32,
    /// The last.
    pub last_at: u32,
    /// Call site that made it; 0 for none.
    pub site: u32,
    /// Whether it was touched at this size.
    touched: bool,
    /// Whether it is a freed block.
    pub freed: bool,
    /// Whether a realloc, not the program, gave it back.
    pub moved: bool,
    /// Collections that had ended when it was made, or freed.
    pub collections: u64,
    past: Option<Box<Past>>,
}

/// What was before the present size.
#[derive(Debug, Clone, Default)]
struct Past {
    known: Spaces,
    touched: bool,
    last: Stamp,
    waiting: Vec<(u64, Stamp, Stamp)>,
    /// Of what waits: bytes times each clock, exactly.
    waiting_space: [u128; 2],
}

/// How a life went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// What it took.
    pub spaces: Spaces,
    /// Whether it was ever touched.
    pub touched: bool,
}

impl Life {
    /// An object made now.
    pub fn new(size: u64, serial: u64, now: Stamp, site: u32, collections: u64) -> Life {
        Life { size, serial, from: now, site, collections, stretch: u64::MAX, ..Life::default() }
    }

    /// A block freed now, of which it is not known whether it is reclaimed.
    pub fn freed(size: u64, site: u32, now: Stamp, collections: u64, moved: bool) -> Life {
        Life { freed: true, moved, ..Life::new(size, 0, now, site, collections) }
    }

    /// It was touched, not before `first` and not after `last`.
    #[inline(always)]
    pub fn touch(&mut self, first: Stamp, last: Stamp) {
        if !self.touched {
            self.first = first;
            self.touched = true;
        }
        self.last = last;
    }

    /// When it was touched last, if ever.
    pub fn last_touch(&self) -> Option<Stamp> {
        let before = self.past.as_ref().filter(|past| past.touched).map(|past| past.last);
        if self.touched { Some(self.last) } else { before }
    }

    /// It has another size from now on.
    pub fn resize(&mut self, size: u64, now: Stamp, takes: &mut impl Takes) {
        self.put_by(now, takes);
        self.size = size;
        self.from = now;
    }

    /// Puts what was at the present size to the past.
    fn put_by(&mut self, now: Stamp, takes: &mut impl Takes) {
        let mut past = self.past.take().unwrap_or_default();
        if std::mem::take(&mut self.touched) {
            past.settle(if past.touched { Phase::Use } else { Phase::Lag }, takes);
            if past.touched {
                past.take(Phase::Use, self.size, self.from, self.last, takes);
            } else {
                past.take(Phase::Lag, self.size, self.from, self.first, takes);
                past.take(Phase::Use, self.size, self.first, self.last, takes);
            }
            past.touched = true;
            past.last = self.last;
            past.wait(self.size, self.last, now);
        } else {
            past.wait(self.size, self.from, now);
        }
        self.past = Some(past);
    }

    /// It ends.
    pub fn end(mut self, now: Stamp, takes: &mut impl Takes) -> Ended {
        if self.past.is_some() {
            self.put_by(now, takes);
            let mut past = self.past.take().unwrap_or_default();
            past.settle(if past.touched { Phase::Drag } else { Phase::Void }, takes);
            return Ended { spaces: past.known, touched: past.touched };
        }
        let mut spaces = Spaces::default();
        let mut take = |phase: Phase, from: Stamp, to: Stamp| {
            spaces.add(phase, self.size, from, to);
            takes.take(phase, self.size, from, to);
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
    fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp, takes: &mut impl Takes) {
        self.known.add(phase, bytes, from, to);
        takes.take(phase, bytes, from, to);
    }

    fn wait(&mut self, bytes: u64, from: Stamp, to: Stamp) {
        for (clock, space) in self.waiting_space.iter_mut().enumerate() {
            *space += u128::from(bytes) * u128::from(to.0[clock].saturating_sub(from.0[clock]));
        }
        if self.waiting.len() == WAITING {
            self.put_together();
        }
        self.waiting.push((bytes, from, to));
    }

    /// Makes one of the two neighbours that took the shortest time.
    fn put_together(&mut self) {
        let length = |at: &usize| {
            let (from, to) = (self.waiting[*at].1, self.waiting[*at + 1].2);
            (to.0[0].saturating_sub(from.0[0]), to.0[1].saturating_sub(from.0[1]))
        };
        let Some(at) = (0..self.waiting.len().saturating_sub(1)).min_by_key(length) else { return };
        let (right, _, to) = self.waiting.remove(at + 1);
        let (left, from, middle) = self.waiting[at];
        self.waiting[at] = (mean(left, right, from, middle, to), from, to);
    }

    fn settle(&mut self, phase: Phase, takes: &mut impl Takes) {
        for (bytes, from, to) in self.waiting.drain(..) {
            takes.take(phase, bytes, from, to);
        }
        for (space, waiting) in self.known.0.iter_mut().zip(&mut self.waiting_space) {
            space.add(phase, std::mem::take(waiting));
        }
    }
}

/// Bytes on average, by the clock of instructions, or of bytes when that one stood still.
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

    impl Takes for Sum {
        fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp) {
            self.0.add(phase, bytes, from, to);
        }
    }

    fn at(clock: u64) -> Stamp {
        Stamp([clock, 3 * clock])
    }

    /// What a life of `(size, from, touches)` pieces that ends at `end` took, by asking every moment.
    fn slowly(pieces: &[(u64, u64, Vec<u64>)], end: u64) -> (Spaces, bool) {
        let touches: Vec<u64> = pieces.iter().flat_map(|piece| &piece.2).copied().collect();
        let (first, last) = (touches.iter().min(), touches.iter().max());
        let mut spaces = Spaces::default();
        for (number, (size, from, _)) in pieces.iter().enumerate() {
            let to = pieces.get(number + 1).map_or(end, |next| next.1);
            for moment in *from..to {
                let phase = match (first, last) {
                    (Some(first), _) if moment < *first => Phase::Lag,
                    (_, Some(last)) if moment < *last => Phase::Use,
                    (Some(_), _) => Phase::Drag,
                    _ => Phase::Void,
                };
                spaces.add(phase, *size, at(moment), at(moment + 1));
            }
        }
        (spaces, !touches.is_empty())
    }

    proptest! {
        #[test]
        fn lives_are_told_apart_as_by_hand(
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
            let mut life = Life::new(pieces[0].0, 1, at(0), 0, 0);
            for (number, (size, from, touches)) in pieces.iter().enumerate() {
                if number > 0 {
                    life.resize(*size, at(*from), &mut sum);
                }
                touches.iter().for_each(|touch| life.touch(at(*touch), at(*touch)));
            }
            let end = start + length;
            let (expected, touched) = slowly(&pieces, end);
            let last = pieces.iter().rev().find_map(|piece| piece.2.last());
            prop_assert_eq!(life.last_touch(), last.map(|touch| at(*touch)));
            let ended = life.end(at(end), &mut sum);
            prop_assert_eq!(ended, Ended { spaces: expected, touched });
            prop_assert_eq!(sum.0, expected);
        }
    }

    #[test]
    fn many_reallocs_of_what_is_not_touched_take_bounded_memory_and_lose_nothing() {
        let mut sum = Sum::default();
        let mut life = Life::new(1, 1, at(0), 0, 0);
        let mut expected = 0;
        for round in 1..10_000_u64 {
            expected += u128::from(life.size);
            life.resize(round % 97 + 1, at(round), &mut sum);
        }
        assert!(life.past.as_ref().is_some_and(|past| past.waiting.len() <= WAITING));
        let ended = life.end(at(9999), &mut sum);
        assert_eq!(ended.spaces.on(Clock::Instructions).void, expected);
        let blurred = sum.0.on(Clock::Instructions).void;
        assert!(blurred.abs_diff(expected) * 50 < expected, "{blurred} instead of {expected}");
    }
}
