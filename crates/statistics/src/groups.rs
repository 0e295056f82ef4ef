//! Long series as means of consecutive values. Permuting is linear in the length of a series, and thousands of
//! repetitions would take hours and gigabytes; flipping or exchanging whole groups is as valid, since it is part of what
//! may be flipped or exchanged under "no difference".

/// Groups of one series, at most; a longer series is grouped.
pub const MOST: usize = 500;

/// Values in each group of a series of `n`; the last group may have fewer.
fn size(n: usize) -> usize {
    n.div_ceil(MOST).max(1)
}

/// The means of the values that are there, group by group; a group without any has none. The longest series of the table
/// has `repetitions`, so the groups of all its series are the same repetitions.
pub fn of_pairs(series: &[Option<f64>], repetitions: usize) -> Vec<Option<f64>> {
    let mean = |group: &[Option<f64>]| {
        let there: Vec<f64> = group.iter().flatten().copied().collect();
        (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64)
    };
    series.chunks(size(repetitions)).map(mean).collect()
}

/// The means of groups of values.
pub fn of_values(values: &[f64]) -> Vec<f64> {
    values.chunks(size(values.len())).map(|group| group.iter().sum::<f64>() / group.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_series_is_itself() {
        let values: Vec<f64> = (0..MOST).map(|at| at as f64).collect();
        assert_eq!(of_values(&values), values);
        let holes = [Some(1.0), None, Some(3.0)];
        assert_eq!(of_pairs(&holes, 3), holes);
        assert!(of_pairs(&[], 0).is_empty() && of_values(&[]).is_empty());
    }

    #[test]
    fn a_long_series_is_its_means() {
        let values: Vec<f64> = (0..3 * MOST).map(|at| at as f64).collect();
        assert_eq!(of_values(&values)[..2], [1.0, 4.0]);
        let mut pairs: Vec<Option<f64>> = values.into_iter().map(Some).collect();
        (pairs[0], pairs[3], pairs[4], pairs[5]) = (None, None, None, None);
        let groups = of_pairs(&pairs, 3 * MOST);
        assert_eq!((groups.len(), groups[0], groups[1], groups[2]), (MOST, Some(1.5), None, Some(7.0)));
    }
}
