//! How large objects are when they are allocated: exact counts of every size, and from them powers of two.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::share::share;

/// Sizes below this have a counter each.
const SMALL: u64 = 1 << 15;
/// Number of larger sizes that are distinguished; further ones are counted by their power of two only.
const LARGE_SIZES: usize = 1 << 16;
/// Powers of two that a size can be rounded up to, and the size 0.
const CLASSES: usize = 66;

/// Counts by exact size.
#[derive(Debug, Clone)]
pub struct SizeCounts {
    small: Box<[u64]>,
    large: HashMap<u64, u64>,
    rest: [Class; CLASSES],
}

/// Objects and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Class {
    objects: u64,
    bytes: u64,
}

/// Objects of sizes above half of `up_to` and at most `up_to`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRow {
    /// Smallest size of the row, bytes.
    pub from: u64,
    /// Largest size of the row, bytes: a power of two, or 0.
    pub up_to: u64,
    /// Objects made.
    pub objects: u64,
    /// Bytes they requested.
    pub bytes: u64,
    /// Share of all objects in this row and those above it, 0 to 1.
    pub cumulative_objects: f64,
    /// Share of all bytes in this row and those above it, 0 to 1.
    pub cumulative_bytes: f64,
}

/// Objects of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactSize {
    /// Bytes.
    pub size: u64,
    /// Objects made.
    pub objects: u64,
    /// Share of all objects, 0 to 1.
    pub share: f64,
    /// Share of all objects of this size and the commoner ones, 0 to 1.
    pub cumulative: f64,
}

/// The sizes of a trace's objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    /// By powers of two, rising; rows without objects between others are kept.
    pub powers: Vec<SizeRow>,
    /// The commonest sizes, commonest first.
    pub commonest: Vec<ExactSize>,
    /// Different sizes that were distinguished.
    pub distinct: u64,
    /// Objects whose exact size was not kept, since there were too many different ones; they are in `powers`.
    #[serde(rename = "not_told_apart")]
    pub not_distinguished: u64,
}

impl Default for SizeCounts {
    fn default() -> SizeCounts {
        SizeCounts {
            small: vec![0; SMALL as usize].into_boxed_slice(),
            large: HashMap::new(),
            rest: [Class::default(); CLASSES],
        }
    }
}

impl SizeCounts {
    /// Counts an object of this many bytes.
    #[inline(always)]
    pub fn add(&mut self, size: u64) {
        match self.small.get_mut(size as usize) {
            Some(count) if size < SMALL => *count += 1,
            _ => self.add_large(size),
        }
    }

    #[inline(never)]
    fn add_large(&mut self, size: u64) {
        if self.large.len() >= LARGE_SIZES && !self.large.contains_key(&size) {
            let class = &mut self.rest[class(size)];
            class.objects += 1;
            class.bytes = class.bytes.saturating_add(size);
        } else {
            *self.large.entry(size).or_default() += 1;
        }
    }

    /// The tables, with the `commonest` sizes.
    pub fn figures(&self, commonest: usize) -> Sizes {
        let small = self.small.iter().enumerate().map(|(size, &count)| (size as u64, count));
        let large = self.large.iter().map(|(&size, &count)| (size, count));
        let mut exact: Vec<(u64, u64)> = small.chain(large).filter(|&(_, count)| count > 0).collect();
        let mut classes = self.rest;
        for &(size, count) in &exact {
            let class = &mut classes[class(size)];
            class.objects += count;
            class.bytes = class.bytes.saturating_add(size.saturating_mul(count));
        }
        let all = classes.iter().fold(Class::default(), |sum, class| Class {
            objects: sum.objects + class.objects,
            bytes: sum.bytes.saturating_add(class.bytes),
        });
        let distinct = exact.len() as u64;
        exact.sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        exact.truncate(commonest);
        let mut sum = 0;
        let commonest = exact
            .into_iter()
            .map(|(size, objects)| {
                sum += objects;
                let (share, cumulative) = (share(objects, all.objects), share(sum, all.objects));
                ExactSize { size, objects, share, cumulative }
            })
            .collect();
        Sizes {
            powers: rows(&classes, all),
            commonest,
            distinct,
            not_distinguished: self.rest.iter().map(|class| class.objects).sum(),
        }
    }
}

fn rows(classes: &[Class; CLASSES], all: Class) -> Vec<SizeRow> {
    let used = |class: &Class| class.objects > 0;
    let (Some(first), Some(last)) = (classes.iter().position(used), classes.iter().rposition(used)) else {
        return Vec::new();
    };
    let mut sum = Class::default();
    (first..=last)
        .map(|index| {
            let Class { objects, bytes } = classes[index];
            sum = Class { objects: sum.objects + objects, bytes: sum.bytes.saturating_add(bytes) };
            let (from, up_to) = bounds(index);
            SizeRow {
                from,
                up_to,
                objects,
                bytes,
                cumulative_objects: share(sum.objects, all.objects),
                cumulative_bytes: share(sum.bytes, all.bytes),
            }
        })
        .collect()
}

/// The row of a size: 0 for 0, then 1, 2, 3 to 4, 5 to 8...
pub fn class(size: u64) -> usize {
    match size {
        0 => 0,
        size => 65 - (size - 1).leading_zeros() as usize,
    }
}

/// Smallest and largest size of a row, bytes.
pub fn bounds(class: usize) -> (u64, u64) {
    match class {
        0 => (0, 0),
        1 => (1, 1),
        65.. => ((1 << 63) + 1, u64::MAX),
        class => ((1 << (class - 2)) + 1, 1 << (class - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_lies_within_the_bounds_of_its_class() {
        let sizes =
            (0..70).chain((6..64).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 1])).chain([u64::MAX]);
        for size in sizes {
            let (from, up_to) = bounds(class(size));
            assert!(from <= size && size <= up_to, "{size} is not in {from}..={up_to}");
        }
    }

    #[test]
    fn sizes_are_counted_exactly_and_by_powers_of_two() {
        let mut counts = SizeCounts::default();
        for size in [16, 16, 16, 24, 24, 40_000, 40_000, 0, 40_001] {
            counts.add(size);
        }
        let sizes = counts.figures(2);
        assert_eq!((sizes.distinct, sizes.not_distinguished), (5, 0));
        assert_eq!((sizes.commonest[0].size, sizes.commonest[0].objects), (16, 3));
        assert_eq!((sizes.commonest[1].size, sizes.commonest[1].cumulative), (24, 5.0 / 9.0));
        let row = |up_to| sizes.powers.iter().find(|row| row.up_to == up_to).expect("a row");
        assert_eq!((row(0).objects, row(16).objects, row(32).bytes, row(65536).bytes), (1, 3, 48, 120_001));
        assert_eq!(
            sizes.powers.last().map(|row| (row.cumulative_objects, row.cumulative_bytes)),
            Some((1.0, 1.0))
        );
        assert_eq!(SizeCounts::default().figures(9), Sizes::default());
    }

    #[test]
    fn too_many_different_sizes_are_counted_by_power_only() {
        let mut counts = SizeCounts::default();
        for size in 0..LARGE_SIZES as u64 + 10 {
            counts.add(SMALL + size);
        }
        counts.add(SMALL);
        let sizes = counts.figures(1);
        assert_eq!(sizes.not_distinguished, 10);
        assert_eq!(sizes.commonest[0].objects, 2, "a size that is kept goes on being counted");
        assert_eq!(sizes.powers.iter().map(|row| row.objects).sum::<u64>(), LARGE_SIZES as u64 + 11);
    }
}
