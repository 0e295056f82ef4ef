//! The interval of a median that the sign test gives, exact whatever the distribution of the values.

use crate::ALPHA;

/// An interval that holds the median of what the values are drawn from, of `family` that hold together (Bonferroni). It
/// excludes a figure exactly where the two-sided sign test does; `None` of too few values for any claim.
pub fn median_interval(values: &[f64], family: usize) -> Option<(f64, f64)> {
    let count = values.len();
    let allowed = ALPHA / (2.0 * family.max(1) as f64);
    // The chance that at most `cut` of the values lie on one side of the median.
    let (mut chance, mut sum, mut widest) = (0.5f64.powi(i32::try_from(count).ok()?), 0.0, None);
    for cut in 0..count / 2 {
        sum += chance;
        if sum > allowed {
            break;
        }
        widest = Some(cut);
        chance *= (count - cut) as f64 / (cut + 1) as f64;
    }
    let cut = widest?;
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

    proptest! {
        #[test]
        fn a_larger_family_is_never_narrower(values in prop::collection::vec(-3.0f64..3.0, 0..30), family in 1usize..20) {
            let (one, all) = (median_interval(&values, 1), median_interval(&values, family));
            prop_assert!(all.is_none_or(|all| one.is_some_and(|one| all.0 <= one.0 && one.1 <= all.1)));
        }
    }
}
