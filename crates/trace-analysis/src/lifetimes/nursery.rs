//! A simulated generational collector: a nursery that new objects fill, and which of them are live when it is full.
//!
//! Survivors are promoted and not followed further. Objects larger than the nursery are allocated elsewhere.
//! Growth of a realloc fills the nursery as a new object would.

use heaptoll_callsites::Sum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A nursery that is being filled.
#[derive(Debug, Clone)]
pub struct Nursery {
    bytes: u64,
    filled: u64,
    collections: u64,
    /// Objects allocated when the byte clock was below this were in the last collection, or an earlier one.
    border: u64,
    survived: Sum,
    died: Sum,
    /// Objects of the nursery that is being filled that have ended.
    dying: Sum,
    kept: Sum,
    large: Sum,
}

/// The figures of a nursery of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NurseryFigures {
    /// Its size, bytes.
    pub nursery_bytes: u64,
    /// How often it was full.
    pub collections: u64,
    /// Objects alive when it was full: promoted.
    pub survived: Sum,
    /// Objects that ended before it was full.
    pub died: Sum,
    /// Objects of the last nursery, which the run does not fill; in no share.
    pub undecided: Sum,
    /// Objects too large for it; in no share.
    pub large: Sum,
    /// Share of objects that survive, 0 to 1; none before the first collection.
    pub survival_objects: Option<f64>,
    /// Share of bytes that survive, 0 to 1; none before the first collection.
    pub survival_bytes: Option<f64>,
    /// Bytes copied or marked by a collection, on average.
    pub promoted_per_collection_bytes: Option<f64>,
}

impl Nursery {
    /// Empty, of `bytes` bytes.
    pub fn new(bytes: u64) -> Nursery {
        Nursery {
            bytes,
            filled: 0,
            collections: 0,
            border: 0,
            survived: Sum::default(),
            died: Sum::default(),
            dying: Sum::default(),
            kept: Sum::default(),
            large: Sum::default(),
        }
    }

    /// An object of `size` bytes takes `growth` bytes more; the byte clock is at `clock` before that.
    #[inline(always)]
    pub fn allocate(&mut self, growth: u64, size: u64, clock: u64) {
        if size > self.bytes {
            return;
        }
        self.filled += growth;
        if self.filled > self.bytes {
            self.collections += 1;
            self.border = clock.saturating_add(1);
            self.filled = growth;
            self.died = self.died.plus(std::mem::take(&mut self.dying));
        }
    }

    /// An object of `size` bytes that was allocated when the byte clock came to `allocated_at` has ended.
    #[inline(always)]
    pub fn free(&mut self, allocated_at: u64, size: u64) {
        let outcome = match allocated_at < self.border {
            _ if size > self.bytes => &mut self.large,
            true => &mut self.survived,
            false => &mut self.dying,
        };
        outcome.add(size);
    }

    /// The same for an object that is live at the end.
    pub fn keep(&mut self, allocated_at: u64, size: u64) {
        let outcome = match allocated_at < self.border {
            _ if size > self.bytes => &mut self.large,
            true => &mut self.survived,
            false => &mut self.kept,
        };
        outcome.add(size);
    }

    /// The result.
    pub fn figures(&self) -> NurseryFigures {
        let Nursery { survived, died, collections, .. } = *self;
        let part = |survived: u64, died: u64| {
            let whole = survived.saturating_add(died);
            (collections > 0 && whole > 0).then(|| survived as f64 / whole as f64)
        };
        NurseryFigures {
            nursery_bytes: self.bytes,
            collections,
            survived,
            died,
            undecided: self.dying.plus(self.kept),
            large: self.large,
            survival_objects: part(survived.objects, died.objects),
            survival_bytes: part(survived.bytes, died.bytes),
            promoted_per_collection_bytes: (collections > 0)
                .then(|| survived.bytes as f64 / collections as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alive_when_the_nursery_is_full_survives() {
        let mut nursery = Nursery::new(100);
        let mut clock = 0;
        let mut allocate = |nursery: &mut Nursery, size: u64| {
            nursery.allocate(size, size, clock);
            clock += size;
            clock
        };
        let first = allocate(&mut nursery, 60);
        let second = allocate(&mut nursery, 40); // just full
        nursery.free(second, 40); // dead in time
        let large = allocate(&mut nursery, 101); // elsewhere
        let third = allocate(&mut nursery, 10); // collects: `first` is promoted
        nursery.free(first, 60);
        nursery.free(third, 10);
        let fourth = allocate(&mut nursery, 5);
        nursery.free(large, 101);
        nursery.keep(fourth, 5);
        let figures = nursery.figures();
        let sum = |objects, bytes| Sum { objects, bytes };
        assert_eq!(figures.collections, 1);
        assert_eq!((figures.survived, figures.died), (sum(1, 60), sum(1, 40)));
        assert_eq!((figures.undecided, figures.large), (sum(2, 15), sum(1, 101)));
        assert_eq!(figures.survival_objects, Some(1.0 / 2.0));
        assert_eq!(figures.survival_bytes, Some(60.0 / 100.0));
        assert_eq!(figures.promoted_per_collection_bytes, Some(60.0));
    }

    #[test]
    fn a_nursery_that_is_never_full_has_no_figures() {
        let mut nursery = Nursery::new(1 << 20);
        nursery.allocate(10, 10, 0);
        nursery.allocate(0, 0, 10);
        nursery.free(10, 10);
        nursery.keep(0, 0);
        assert_eq!((nursery.figures().survival_bytes, nursery.figures().collections), (None, 0));
    }
}
