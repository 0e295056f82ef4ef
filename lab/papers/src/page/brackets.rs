//! Figures of a paper's section, with their intervals in brackets.

use heaptoll_report::format;
use heaptoll_statistics::Interval;

/// A ratio and its interval in brackets, which is empty where there is none.
pub fn ratio(value: f64, ends: Option<(f64, f64)>) -> (String, String) {
    let Some((low, high)) =
        ends.filter(|(low, high)| low.is_finite() && high.is_finite() && value.is_finite())
    else {
        return (format::ratio(value), ends.map_or_else(String::new, |ends| open(ends, format::ratio)));
    };
    let text =
        format::interval(&Interval { ratio: value, low, high, differs: low > 1.0 || high < 1.0, pairs: 0 });
    match text.split_once(' ') {
        Some((value, range)) => (value.to_owned(), range.to_owned()),
        None => (text, String::new()),
    }
}

/// A figure in its own unit and its interval in brackets, which is empty where there is none.
pub fn plainly(value: f64, ends: Option<(f64, f64)>) -> (String, String) {
    (format::significant(value), ends.map_or_else(String::new, |ends| open(ends, format::significant)))
}

/// An interval in brackets; an infinite end is written as such.
fn open((low, high): (f64, f64), figure: fn(f64) -> String) -> String {
    let end = |end: f64| match end {
        end if end == f64::INFINITY => "∞".to_owned(),
        end if end == f64::NEG_INFINITY => "−∞".to_owned(),
        end => figure(end),
    };
    // A dash next to a sign would be read as two.
    let between = if low < 0.0 || high < 0.0 { " to " } else { "–" };
    format!("({}{between}{})", end(low), end(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_in_brackets_and_may_be_endless() {
        assert_eq!(ratio(1.617, Some((1.306, 1.99))), ("1.62".into(), "(1.31–1.99)".into()));
        assert_eq!(ratio(1.5, None), ("1.50".into(), String::new()));
        assert_eq!(ratio(1.5, Some((0.0, f64::INFINITY))).1, "(0.000–∞)");
        assert_eq!(plainly(-0.02, Some((-0.1, 0.06))), ("-0.0200".into(), "(-0.100 to 0.0600)".into()));
    }
}
