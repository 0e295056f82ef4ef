//! The geometric mean, for ratios: it does not depend on which of two sides is the base.

/// Geometric mean of positive values; `None` of nothing.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.into_iter().map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_mean_is_symmetric_in_ratios() {
        assert_eq!(geometric_mean([]), None);
        let mean = geometric_mean([0.5, 2.0, 1.0]).expect("a mean");
        assert!((mean - 1.0).abs() < 1e-12);
    }
}
