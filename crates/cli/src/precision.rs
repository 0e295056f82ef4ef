//! Precisions as options give them: `1%`.

/// A half-width from an option, as a share: `1%`.
pub fn precision(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').map(str::trim_end);
    match percent.and_then(|number| number.parse::<f64>().ok()) {
        Some(percent) if (0.01..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("give percent between .01 and 100, such as 1%".into()),
    }
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
