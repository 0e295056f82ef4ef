//! The interval of a median that the sign test gives, exact whatever the distribution of the values.

use crate::ALPHA;

/// The chance that at least so many of `count` occur, each with this chance by itself: the exact test of a share.
pub fn at_least(least: usize, count: usize, chance: f64) -> f64 {
    let of = |found: usize| {
        let ways: f64 = (0..found).map(|at| (count - at) as f64 / (at + 1) as f64).product();
        ways * chance.powf(found as f64) * (1.0 - chance).powf((count - found) as f64)
    };
    (least..=count).map(of).sum()
}

/// An interval that holds the median of what the values are drawn from, of `family` that hold together (Bonferroni). It
/// excludes a figure exactly where the two-sided sign test does; `None` of too few values for any claim.
pub fn median_interval(values: &[f64], family: usize) -> Option<(f64, f64)> {
    let count = values.len();
    let allowed = ALPHA / (2.0 * family.max(1) as f64);
    // The most values that may lie on one side of the median.
    let cut = (0..count / 2).take_while(|cut| at_least(count - cut, count, 0.5) <= allowed).last()?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((sorted[cut], sorted[count - 1 - cut]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    /// Every sign that values about a median of none can have, each as likely as the others.
    #[test]
    fn the_median_is_left_out_no_more_often_than_the_level_allows() {
        for count in 1..=13usize {
            let out = (0..1u32 << count).filter(|signs| {
                let sign = |at: usize| if signs >> at & 1 == 1 { -1.0 } else { 1.0 };
                let values: Vec<f64> = (0..count).map(|at| sign(at) * (at + 1) as f64).collect();
                median_interval(&values, 1).is_some_and(|(low, high)| low > 0.0 || high < 0.0)
            });
            let share = out.count() as f64 / f64::from(1u32 << count);
            assert!(share <= ALPHA, "{count}: {share}");
            assert_eq!(share > 0.0, count >= 6, "{count}: six of six are the fewest that decide");
        }
    }

    #[test]
    fn fifteen_of_twenty_decide_and_fourteen_do_not() {
        let excludes = |above: usize, family: usize| {
            let values: Vec<f64> = (0..20).map(|at| if at < above { 1.0 } else { -1.0 }).collect();
            median_interval(&values, family).is_some_and(|(low, _)| low > 0.0)
        };
        assert!(excludes(15, 1) && !excludes(14, 1));
        assert!(excludes(18, 10) && !excludes(15, 10), "of ten medians each has a tenth of the level");
    }

    #[test]
    fn a_share_is_left_out_as_often_as_its_chances_add_up() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(at_least(0, 7, 0.3), 1.0) && close(at_least(2, 2, 0.5), 0.25));
        assert!(close(at_least(1, 3, 0.2), 1.0 - 0.512) && at_least(3, 2, 0.5) == 0.0);
    }

    proptest! {
        #[test]
        fn a_larger_family_is_never_narrower(values in prop::collection::vec(-3.0f64..3.0, 0..30), family in 1usize..20) {
            let (one, all) = (median_interval(&values, 1), median_interval(&values, family));
            prop_assert!(all.is_none_or(|all| one.is_some_and(|one| all.0 <= one.0 && one.1 <= all.1)));
        }
    }
}
