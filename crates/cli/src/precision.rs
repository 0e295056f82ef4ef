//! Precisions as options give them: `1%`.

use heaptoll_units::read_percent;

/// A half-width from an option, as a share: `1%`.
pub fn precision(text: &str) -> Result<f64, String> {
    let signed = text.trim_end().ends_with('%');
    let share = read_percent(text).filter(|share| signed && (0.0001..=1.0).contains(share));
    share.ok_or_else(|| "give a share with its sign, between .01% and 100%, such as 1%".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_given_in_percent() {
        assert_eq!(precision("1%"), Ok(0.01));
        assert_eq!(precision("2.5 %"), Ok(0.025));
        for wrong in ["1", "0.01", "0%", "-1%", "101%", "x%", "%", "NaN%", ""] {
            assert!(precision(wrong).is_err(), "{wrong}");
        }
    }
}
