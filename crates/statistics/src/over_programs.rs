//! Geometric means over programs, formed within each repetition, so that their intervals hold over repetitions.

use crate::FEWEST_PAIRS;

/// The mean of several programs' log ratios, repetition by repetition, and how many programs are in it.
///
/// A program with too few pairs to claim anything is left out: it would take the other repetitions with it, for one
/// counts only when every program has its pair in it; else the mean would be of other programs each time.
pub fn over_programs(programs: &[Vec<Option<f64>>], repetitions: u32) -> (u32, Vec<Option<f64>>) {
    let enough = (repetitions as usize).clamp(1, FEWEST_PAIRS);
    let kept: Vec<&Vec<Option<f64>>> =
        programs.iter().filter(|ratios| ratios.iter().flatten().count() >= enough).collect();
    let mean = |repetition: usize| {
        let values: Option<Vec<f64>> =
            kept.iter().map(|ratios| ratios.get(repetition).copied().flatten()).collect();
        values
            .filter(|values| !values.is_empty())
            .map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    (kept.len() as u32, (0..repetitions as usize).map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn a_program_that_soon_failed_does_not_take_the_others_with_it() {
        let whole = vec![Some(0.2); 8];
        let failed = vec![Some(9.0), None, None, None, None, None, None, None];
        assert_eq!(over_programs(&[whole.clone(), failed], 8), (1, whole));
    }

    #[test]
    fn a_repetition_counts_only_with_all_programs() {
        let mut holed = vec![Some(0.4); 8];
        holed[3] = None;
        let (programs, mean) = over_programs(&[vec![Some(0.2); 8], holed], 8);
        assert_eq!((programs, mean[3]), (2, None));
        assert!(mean[0].is_some_and(|value| (value - 0.3).abs() < 1e-12));
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_its_programs(
            programs in prop::collection::vec(prop::collection::vec(-2.0f64..2.0, 8), 1..6),
        ) {
            let series: Vec<Vec<Option<f64>>> =
                programs.iter().map(|values| values.iter().copied().map(Some).collect()).collect();
            let (count, mean) = over_programs(&series, 8);
            prop_assert_eq!(count as usize, programs.len());
            for (repetition, value) in mean.iter().enumerate() {
                let of = programs.iter().map(|values| values[repetition]);
                let (low, high) = (of.clone().fold(f64::INFINITY, f64::min), of.fold(f64::NEG_INFINITY, f64::max));
                prop_assert!(value.is_some_and(|value| low - 1e-12 <= value && value <= high + 1e-12));
            }
        }
    }
}
