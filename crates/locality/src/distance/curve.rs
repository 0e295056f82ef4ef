//! Misses for every number of entries that an LRU memory can hold: the curve that stack distances give.
//!
//! A reference with distance d (d other entries since the last touch of its own) hits in every memory of more than d
//! entries and misses in every other (Mattson et al. 1970). So a histogram of distances is the curve of all sizes.

use serde::{Deserialize, Serialize};

use super::histogram::Histogram;
pub use crate::misses::{Estimate, Misses};
use crate::sampled::Tail;
use crate::split::{Accessor, Split};

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Entries of the memory.
    pub entries: u64,
    /// Misses with that number of entries.
    pub misses: Misses,
}

/// Misses of LRU memories of every size. Serialised, it keeps every distance that occurred.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Bytes of an entry.
    pub entry_bytes: u64,
    /// References made.
    pub references: Split<u64>,
    /// References to an entry that was not touched before; they miss in every memory.
    pub cold: Split<u64>,
    /// Different entries that were touched: a memory that holds as many misses only cold references.
    pub distinct: u64,
    pub(crate) distances: Split<Histogram>,
    pub(crate) tail: Option<Tail>,
}

impl Curve {
    /// The most entries for which misses are exact; `None`: they always are.
    pub fn exact_up_to(&self) -> Option<u64> {
        self.tail.as_ref().map(Tail::seam)
    }

    /// Misses in a memory of this many entries (0: all miss).
    pub fn misses(&self, entries: u64) -> Misses {
        if let Some(tail) = &self.tail
            && entries > tail.seam()
        {
            return tail.misses(entries, &self.cold, self.distinct);
        }
        let by =
            Split::of(|accessor| self.references.get(accessor) - self.distances.get(accessor).below(entries));
        Misses {
            by: Split::of(|accessor| Estimate::exact(*by.get(accessor))),
            total: Estimate::exact(by.total()),
        }
    }

    /// Misses in a memory of this many bytes; a remainder smaller than an entry is not used.
    pub fn misses_in(&self, bytes: u64) -> Misses {
        self.misses(bytes / self.entry_bytes)
    }

    /// Sizes for the points of a graph: every size up to `per_octave` entries, then that number in each doubling, up to
    /// the first that holds all that was touched.
    pub fn sizes(&self, per_octave: u32) -> Vec<u64> {
        let mut sizes = vec![1];
        let octave = f64::from(per_octave.max(1));
        let mut step = 0.0;
        while sizes[sizes.len() - 1] < self.distinct {
            step += 1.0;
            let size = (step / octave).exp2().round().min(self.distinct as f64) as u64;
            if size > sizes[sizes.len() - 1] {
                sizes.push(size);
            }
        }
        sizes
    }

    /// Points of the curve at [`Curve::sizes`].
    pub fn points(&self, per_octave: u32) -> Vec<Point> {
        self.sizes(per_octave)
            .into_iter()
            .map(|entries| Point { entries, misses: self.misses(entries) })
            .collect()
    }

    /// The fewest entries with at most this many misses in total; `None` if cold references alone are more.
    pub fn fewest(&self, misses: u64) -> Option<u64> {
        if self.cold.total() > misses {
            return None;
        }
        let (mut low, mut high) = (0, self.distinct);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.misses(middle).total.value <= misses {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    /// How often each accessor's references had each distance that occurred, ascending; exact distances only.
    pub fn distances(&self, accessor: Accessor) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.distances.get(accessor).iter()
    }
}
