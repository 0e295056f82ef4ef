//! Sizes of heaps as multiples of the smallest one, as an option gives them: `1.25,1.5,2,3,4`.

use std::str::FromStr;

use thiserror::Error;

/// Factors at most: each is a stack of its own for each collector.
const MOST: usize = 12;

/// As of an option without a value.
pub const DEFAULT: &str = "1.25,1.5,2,3,4";

/// Multiples of the smallest heap, ascending, each once.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors(pub Vec<f64>);

/// Why a text is no list of factors.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FactorsError {
    /// This word is no number, or none that a heap can be a multiple by.
    #[error("`{0}` is not a number; give multiples of the smallest heap, as in 1.25,1.5,2,3,4")]
    NoNumber(String),
    /// This one is less than 1: the program does not complete in less than its smallest heap.
    #[error("{0} is less than 1; a program cannot complete in less than its smallest heap: give 1 or more")]
    BelowOne(String),
    /// More than heaptoll runs.
    #[error("{0} factors are too many; give at most {MOST}, because each runs under each collector")]
    TooMany(usize),
}

impl FromStr for Factors {
    type Err = FactorsError;

    fn from_str(text: &str) -> Result<Factors, FactorsError> {
        let read = |word: &str| {
            let factor: Option<f64> = word.trim().parse().ok().filter(|factor: &f64| factor.is_finite());
            match factor {
                Some(factor) if factor >= 1.0 => Ok(factor),
                Some(_) => Err(FactorsError::BelowOne(word.trim().into())),
                None => Err(FactorsError::NoNumber(word.into())),
            }
        };
        let mut factors = text.split(',').map(read).collect::<Result<Vec<f64>, FactorsError>>()?;
        factors.sort_by(f64::total_cmp);
        factors.dedup();
        if factors.len() > MOST {
            return Err(FactorsError::TooMany(factors.len()));
        }
        Ok(Factors(factors))
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_compare::run::FACTORS;

    use super::*;

    #[test]
    fn factors_are_read_in_order_and_once() {
        assert_eq!("3,1.5, 1,3".parse(), Ok(Factors(vec![1.0, 1.5, 3.0])));
        assert_eq!(DEFAULT.parse(), Ok(Factors(FACTORS.into())));
    }

    #[test]
    fn what_is_no_factor_is_refused_with_what_to_give() {
        let refused = |text: &str| text.parse::<Factors>().expect_err(text);
        assert_eq!(refused("0.9"), FactorsError::BelowOne("0.9".into()));
        assert_eq!(refused("-2"), FactorsError::BelowOne("-2".into()));
        for wrong in ["", "x", "1,,2", "2x", "NaN", "inf"] {
            assert!(matches!(refused(wrong), FactorsError::NoNumber(_)), "{wrong}");
        }
        let many: Vec<String> = (1..=13).map(|factor| factor.to_string()).collect();
        assert_eq!(refused(&many.join(",")), FactorsError::TooMany(13));
        assert!(refused("0.5").to_string().contains("give 1 or more"));
    }
}
