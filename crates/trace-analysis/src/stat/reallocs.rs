//! Use of realloc: growing, shrinking, moving, and how often the same object is resized.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names and upper ends of the rows of growth factors, in fortieths.
const FACTORS: [(&str, u64); 8] = [
    ("up to 1/2", 20),
    ("1/2 to 1", 39),
    ("same size", 40),
    ("1 to 1.1", 44),
    ("1.1 to 1.25", 50),
    ("1.25 to 1.5", 60),
    ("1.5 to 2", 80),
    ("2 to 4", 160),
];
/// Rows: those of [`FACTORS`], above 4, and growth from nothing.
const ROWS: usize = FACTORS.len() + 2;
/// Powers of two of the number of resizes of one object.
const CHAINS: usize = 17;

/// Running counts.
#[derive(Debug, Clone, Default)]
pub struct ReallocCounts {
    calls: u64,
    grown: u64,
    shrunk: u64,
    moved: u64,
    requested_bytes: u64,
    grown_bytes: u64,
    shrunk_bytes: u64,
    copied_bytes: u64,
    factors: [u64; ROWS],
    chains: [u64; CHAINS],
    longest: u64,
}

/// Use of realloc.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reallocs {
    /// Calls that returned a block for an existing object.
    pub calls: u64,
    /// To a larger size.
    pub grown: u64,
    /// To a smaller size.
    pub shrunk: u64,
    /// To the size it had.
    pub same_size: u64,
    /// The block moved.
    pub moved: u64,
    /// The block stayed where it was.
    pub in_place: u64,
    /// Bytes requested, whole new sizes.
    pub requested_bytes: u64,
    /// New minus old size where it grew, bytes. Counts as allocated.
    pub grown_bytes: u64,
    /// Old minus new size where it shrank, bytes.
    pub shrunk_bytes: u64,
    /// The smaller of both sizes where the block moved, bytes: what had to be copied.
    pub copied_bytes: u64,
    /// New size by old size.
    pub factors: Vec<FactorRow>,
    /// Objects by how often they were resized; those never resized are not in it.
    pub chains: Vec<ChainRow>,
    /// Objects that were resized at all.
    pub resized_objects: u64,
    /// Most resizes of one object (65,535 means that or more).
    pub longest_chain: u64,
}

/// Calls with growth factors in a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactorRow {
    /// New size by old size, as text: `1.5 to 2` is above 1.5 and at most 2.
    pub factor: String,
    /// Calls.
    pub calls: u64,
}

/// Objects resized `from` to `up_to` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainRow {
    /// Fewest resizes.
    pub from: u64,
    /// Most resizes.
    pub up_to: u64,
    /// Objects.
    pub objects: u64,
}

impl ReallocCounts {
    /// Counts a resize.
    #[inline]
    pub fn add(&mut self, old: u64, new: u64, moved: bool) {
        self.calls += 1;
        self.grown += u64::from(new > old);
        self.shrunk += u64::from(new < old);
        self.requested_bytes = self.requested_bytes.saturating_add(new);
        self.grown_bytes = self.grown_bytes.saturating_add(new.saturating_sub(old));
        self.shrunk_bytes = self.shrunk_bytes.saturating_add(old.saturating_sub(new));
        if moved {
            self.moved += 1;
            self.copied_bytes = self.copied_bytes.saturating_add(old.min(new));
        }
        self.factors[factor_row(old, new)] += 1;
    }

    /// Counts an object at its end that was resized this often, at least once.
    #[inline(never)]
    pub fn end_chain(&mut self, resizes: u64) {
        self.chains[super::sizes::class(resizes).saturating_sub(1).min(CHAINS - 1)] += 1;
        self.longest = self.longest.max(resizes);
    }

    /// The result.
    pub fn figures(&self) -> Reallocs {
        let names = FACTORS.iter().map(|(name, _)| *name).chain(["above 4", "from nothing"]);
        let last_chain = self.chains.iter().rposition(|&objects| objects > 0).map_or(0, |last| last + 1);
        Reallocs {
            calls: self.calls,
            grown: self.grown,
            shrunk: self.shrunk,
            same_size: self.calls - self.grown - self.shrunk,
            moved: self.moved,
            in_place: self.calls - self.moved,
            requested_bytes: self.requested_bytes,
            grown_bytes: self.grown_bytes,
            shrunk_bytes: self.shrunk_bytes,
            copied_bytes: self.copied_bytes,
            factors: names
                .zip(self.factors)
                .map(|(name, calls)| FactorRow { factor: name.to_owned(), calls })
                .collect(),
            chains: (0..last_chain)
                .map(|row| {
                    let (from, up_to) = super::sizes::bounds(row + 1);
                    ChainRow { from, up_to, objects: self.chains[row] }
                })
                .collect(),
            resized_objects: self.chains.iter().sum(),
            longest_chain: self.longest,
        }
    }
}

fn factor_row(old: u64, new: u64) -> usize {
    if old == new {
        return 2;
    }
    if old == 0 {
        return ROWS - 1;
    }
    // Sizes are below 2^48: no overflow.
    let new = new * 40;
    if new < old * 40 {
        return usize::from(new > old * 20);
    }
    (3..FACTORS.len()).find(|&row| new <= old * FACTORS[row].1).unwrap_or(FACTORS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_factors_fall_into_their_rows() {
        let row = |old, new| {
            let mut counts = ReallocCounts::default();
            counts.add(old, new, false);
            let factors = counts.figures().factors;
            factors.iter().find(|row| row.calls == 1).expect("a row").factor.clone()
        };
        assert_eq!(row(100, 50), "up to 1/2");
        assert_eq!(row(100, 51), "1/2 to 1");
        assert_eq!(row(1000, 999), "1/2 to 1");
        assert_eq!(row(100, 100), "same size");
        assert_eq!(row(1000, 1001), "1 to 1.1");
        assert_eq!(row(100, 125), "1.1 to 1.25");
        assert_eq!(row(100, 150), "1.25 to 1.5");
        assert_eq!(row(100, 200), "1.5 to 2");
        assert_eq!(row(100, 201), "2 to 4");
        assert_eq!(row(100, 401), "above 4");
        assert_eq!(row(0, 8), "from nothing");
        assert_eq!(row(0, 0), "same size");
        assert_eq!(row(crate::objects::MAX_SIZE, crate::objects::MAX_SIZE - 1), "1/2 to 1");
    }

    #[test]
    fn resizes_are_counted_by_direction_and_move() {
        let mut counts = ReallocCounts::default();
        counts.add(10, 30, true);
        counts.add(30, 20, false);
        counts.add(20, 20, false);
        counts.end_chain(3);
        counts.end_chain(1);
        counts.end_chain(1 << 16);
        let figures = counts.figures();
        assert_eq!((figures.grown, figures.shrunk, figures.same_size), (1, 1, 1));
        assert_eq!((figures.moved, figures.in_place), (1, 2));
        let bytes =
            (figures.requested_bytes, figures.grown_bytes, figures.shrunk_bytes, figures.copied_bytes);
        assert_eq!(bytes, (70, 20, 10, 10));
        assert_eq!(figures.chains[0], ChainRow { from: 1, up_to: 1, objects: 1 });
        assert_eq!(figures.chains[2], ChainRow { from: 3, up_to: 4, objects: 1 });
        assert_eq!((figures.resized_objects, figures.longest_chain), (3, 1 << 16));
    }
}
