//! Ratios: how many times one figure is another.

use crate::NONE;
use crate::count::grouped;

/// A ratio with two decimals, one more where it is below 0.1, fewer where it is large.
pub fn ratio(value: f64) -> String {
    match value.abs() {
        a if !a.is_finite() => NONE.to_owned(),
        a if a >= 99.95 => grouped(value.round() as i128),
        a if a >= 9.995 => format!("{value:.1}"),
        a if a >= 0.0995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A ratio whose effects are of a few per cent: three decimals as long as it is below 10.
pub fn factor(value: f64) -> String {
    if value.abs() < 9.995 { format!("{value:.3}") } else { ratio(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_keep_the_digits_that_matter() {
        assert_eq!([0.05, 0.5, 5.0, 50.0, 500.0].map(ratio).join(" "), "0.050 0.50 5.00 50.0 500");
        assert_eq!([0.97, 1.0004, 9.9949, 12.34].map(factor).join(" "), "0.970 1.000 9.995 12.3");
        assert_eq!([ratio(f64::NAN), factor(f64::INFINITY)], [NONE; 2]);
    }
}
