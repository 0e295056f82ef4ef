//! The largest statistic of a table under each of its sign flips: of all that heaptoll computes from rows this takes the
//! longest, so it is computed for eight flips at once, without sorting.
//!
//! Flipping changes no magnitude. Of the values in the order of their magnitudes, what is cut off at either end are the
//! first few negative ones and the first few positive ones: one pass that counts both finds them. From where both counts
//! are full all values are kept, and the sum of their squares is the same under every flip. Where a flip leaves too few
//! values of one sign, the ends are others, and that flip is computed by sorting.

use crate::flips::{Flips, LANES, Lanes};
use crate::trimmed::{cut, statistic, trimmed_of_sorted};

/// The largest |t| of a family under each flip; a series is (repetition, log ratio).
pub fn largest(family: &[Vec<(usize, f64)>], flips: &Flips) -> Vec<f64> {
    let family: Vec<Series> = family.iter().map(|values| Series::new(values)).collect();
    let mut found = Vec::with_capacity(flips.count() + LANES);
    flips.for_each_block(|signs| {
        let mut most = [0.0; LANES];
        for series in &family {
            for (most, t) in most.iter_mut().zip(series.statistics(signs)) {
                *most = f64::max(*most, t);
            }
        }
        found.extend(most);
    });
    found.truncate(flips.count());
    found
}

/// Values that are counted before it is tested again whether both counts are full.
const STEP: usize = 8;

/// A series on the way to its statistics.
struct Series {
    /// The largest magnitude first.
    by_magnitude: Vec<Value>,
    /// Values left out at either end.
    cut: usize,
    /// The sum of squares from each place to the end.
    squares_from: Vec<f64>,
}

/// A log ratio, taken apart.
struct Value {
    repetition: usize,
    /// 1 or -1.
    sign: f64,
    magnitude: f64,
}

/// What one pass finds under each flip of a block.
struct Kept {
    sum: Lanes,
    squares: Lanes,
    /// The kept values that are next to what is cut off.
    first: Lanes,
    last: Lanes,
    /// The signs of the values up to where both counts are full, added up.
    balance: Lanes,
    /// How many these are.
    counted: f64,
}

impl Series {
    fn new(values: &[(usize, f64)]) -> Series {
        let apart = |(repetition, value): &(usize, f64)| Value {
            repetition: *repetition,
            sign: 1f64.copysign(*value),
            magnitude: value.abs(),
        };
        let mut by_magnitude: Vec<Value> = values.iter().map(apart).collect();
        by_magnitude.sort_by(|one, other| other.magnitude.total_cmp(&one.magnitude));
        let mut squares_from = vec![0.0; by_magnitude.len() + 1];
        for (at, value) in by_magnitude.iter().enumerate().rev() {
            squares_from[at] = squares_from[at + 1] + value.magnitude * value.magnitude;
        }
        Series { by_magnitude, cut: cut(values.len()), squares_from }
    }

    /// |t| under each flip of a block.
    fn statistics(&self, signs: &[Lanes]) -> Lanes {
        let kept = self.kept(signs);
        let (n, ends) = (self.by_magnitude.len() as f64, self.cut as f64);
        std::array::from_fn(|index| {
            // At least one value of either sign must be kept.
            let fewer = (kept.counted - kept.balance[index].abs()) / 2.0;
            if fewer <= ends {
                return self.sorted_statistic(signs, index);
            }
            let (sum, first, last) = (kept.sum[index], kept.first[index], kept.last[index]);
            let winsorised = sum + ends * (first + last);
            // Values of both signs are among them, so this is no difference of nearly equal numbers.
            let squares =
                kept.squares[index] + ends * (first * first + last * last) - winsorised * winsorised / n;
            statistic(sum, squares, n, ends)
        })
    }

    fn kept(&self, signs: &[Lanes]) -> Kept {
        let zero = [0.0; LANES];
        let mut kept =
            Kept { sum: zero, squares: zero, first: zero, last: zero, balance: zero, counted: 0.0 };
        // Of one sign are no more than there are values, so that none of the first is kept.
        for value in &self.by_magnitude[..self.cut] {
            for (balance, sign) in kept.balance.iter_mut().zip(&signs[value.repetition]) {
                *balance += sign * value.sign;
            }
        }
        let mut at = self.cut;
        while at < self.by_magnitude.len() && !self.are_full(&kept, at) {
            let end = self.by_magnitude.len().min(at + STEP);
            for value in &self.by_magnitude[at..end] {
                self.count(&mut kept, at, value, &signs[value.repetition]);
                at += 1;
            }
        }
        for value in &self.by_magnitude[at..] {
            let flipped = value.sign * value.magnitude;
            for (sum, sign) in kept.sum.iter_mut().zip(&signs[value.repetition]) {
                *sum += sign * flipped;
            }
        }
        kept.counted = at as f64;
        kept.squares.iter_mut().for_each(|squares| *squares += self.squares_from[at]);
        kept
    }

    /// Whether under each flip more values of either sign than are cut off come before a place.
    fn are_full(&self, kept: &Kept, at: usize) -> bool {
        let most = kept.balance.iter().fold(0.0, |most: f64, one| most.max(one.abs()));
        at as f64 - most > 2.0 * self.cut as f64 + 1.0
    }

    /// Counts the value at a place under each flip, and keeps it where enough of its sign were cut off before.
    #[inline(always)]
    fn count(&self, kept: &mut Kept, at: usize, value: &Value, signs: &Lanes) {
        // With `same` values of its sign up to it, `2 * same = at + 1 + sign * balance`.
        let full = 2.0 * self.cut as f64 - (at as f64 + 1.0);
        for (index, sign) in signs.iter().enumerate() {
            let sign = sign * value.sign;
            let flipped = sign * value.magnitude;
            kept.balance[index] += sign;
            let beyond = sign * kept.balance[index] - full;
            let taken = if beyond > 0.0 { flipped } else { 0.0 };
            kept.sum[index] += taken;
            kept.squares[index] += taken * taken;
            let is_next = beyond == 2.0;
            kept.first[index] = if is_next & (sign < 0.0) { flipped } else { kept.first[index] };
            kept.last[index] = if is_next & (sign > 0.0) { flipped } else { kept.last[index] };
        }
    }

    /// |t| under one flip of a block, from the sorted values.
    fn sorted_statistic(&self, signs: &[Lanes], index: usize) -> f64 {
        #[cfg(test)]
        SORTED.with(|sorted| sorted.set(sorted.get() + 1));
        let flip = |value: &Value| signs[value.repetition][index] * value.sign * value.magnitude;
        let mut flipped: Vec<f64> = self.by_magnitude.iter().map(flip).collect();
        flipped.sort_unstable_by(f64::total_cmp);
        let (mean, error) = trimmed_of_sorted(&flipped, self.cut);
        mean.abs() / error
    }
}

#[cfg(test)]
thread_local! {
    /// Flips that this thread computed by sorting.
    static SORTED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop, prop_assert, proptest};

    /// Each statistic by sorting the flipped values.
    fn by_sorting(family: &[Vec<(usize, f64)>], flips: &Flips) -> Vec<f64> {
        let mut found = Vec::new();
        flips.for_each_block(|signs| {
            for index in 0..LANES {
                let of_series =
                    |values: &Vec<(usize, f64)>| Series::new(values).sorted_statistic(signs, index);
                found.push(family.iter().map(of_series).fold(0.0, f64::max));
            }
        });
        found.truncate(flips.count());
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn without_sorting_the_statistics_are_the_same(
            values in prop::collection::vec(prop::option::of((-1.0f64..1.0, 0i32..9)), 2..40),
            shift in -1.0f64..1.0,
        ) {
            // Of very different magnitudes, some of them missing, and some equal.
            let series = |shift: f64| -> Vec<(usize, f64)> {
                let there = values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
                there.map(|(at, (value, power))| (at, shift + value * 10f64.powi(-power))).collect()
            };
            let family = [series(0.0), series(shift)];
            if family[0].len() >= 2 {
                let flips = Flips::new(values.len(), 1);
                let (fast, sorted) = (largest(&family, &flips), by_sorting(&family, &flips));
                for (fast, sorted) in fast.iter().zip(&sorted) {
                    prop_assert!((fast - sorted).abs() <= 1e-10 * sorted.max(1.0), "{} {}", fast, sorted);
                }
            }
        }
    }

    #[test]
    fn of_many_repetitions_only_the_identity_is_sorted() {
        let values: Vec<(usize, f64)> =
            (0..400).map(|at| (at, 0.01 + (at * 37 % 101) as f64 / 1e4)).collect();
        let flips = Flips::new(400, 1);
        SORTED.with(|sorted| sorted.set(0));
        assert_eq!(largest(&[values.clone(), values], &flips).len(), flips.count());
        assert_eq!(SORTED.with(std::cell::Cell::get), 2, "a sort a flip would take ten times as long");
    }
}
