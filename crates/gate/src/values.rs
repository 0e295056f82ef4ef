//! Figures of a gate as text, in their units.

use heaptoll_report::format::NONE;
use heaptoll_statistics::FEWEST_PAIRS;
use heaptoll_units::{count, seconds, whole_bytes};

use super::figures::{Change, MetricFigures};
use super::metric::Unit;

/// From here on a ratio is easier to read than a percentage.
const MANY_TIMES: f64 = 11.0;

/// A figure with its unit: `1 234`, `1.20 MiB`, `0.503 s`.
pub fn value(unit: Unit, figure: Option<f64>) -> String {
    let Some(figure) = figure.filter(|figure| figure.is_finite()) else { return NONE.to_owned() };
    match unit {
        Unit::Count => count(figure),
        Unit::Bytes => whole_bytes(figure.max(0.0) as u64),
        Unit::Seconds => format!("{} s", seconds(figure)),
    }
}

/// A unit as other tools are given it.
pub fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Bytes => "bytes",
        Unit::Seconds => "s",
    }
}

/// A change in percent, with its interval where it has one: `+1.000 %`, `+1.0 % (-1.0 % to +3.0 %)`.
pub fn change(change: &Change) -> String {
    match change {
        Change::None => NONE.to_owned(),
        Change::Exact { ratio: 1.0 } => "the same".into(),
        Change::Exact { ratio } => signed(*ratio, 3),
        // Of fewer pairs the ends are the least and the largest ratio, and no interval.
        Change::Measured(interval) => format!(
            "{} ({}{} to {})",
            signed(interval.ratio, 1),
            if (interval.pairs as usize) < FEWEST_PAIRS { "range " } else { "" },
            signed(interval.low, 1),
            signed(interval.high, 1)
        ),
    }
}

/// A ratio as a signed percentage. A change is not shown as none.
fn signed(ratio: f64, digits: usize) -> String {
    if ratio >= MANY_TIMES {
        return format!("{} times", count(ratio.round()));
    }
    let percent = 100.0 * (ratio - 1.0);
    let least = 10f64.powi(-(digits as i32));
    if percent != 0.0 && percent.abs() < least / 2.0 {
        return format!("{}{least} %", if percent > 0.0 { "< +" } else { "> -" });
    }
    format!("{percent:+.digits$} %")
}

/// Lower and upper end of the new build's figure: the base's by the interval of the ratio. `None` for counts.
pub fn ends(metric: &MetricFigures) -> Option<(f64, f64)> {
    let (Change::Measured(interval), Some(base), Some(new)) = (&metric.change, metric.base, metric.new)
    else {
        return None;
    };
    let ends = (new.min(base * interval.low), new.max(base * interval.high));
    (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
}

#[cfg(test)]
mod tests {
    use heaptoll_statistics::Interval;

    use super::*;

    #[test]
    fn figures_have_their_units() {
        assert_eq!(value(Unit::Count, Some(12_345.0)), "12\u{202f}345");
        assert_eq!(value(Unit::Seconds, Some(0.5)), "0.500 s");
        assert_eq!(
            (value(Unit::Bytes, Some(2048.0)), value(Unit::Count, None)),
            ("2.00 KiB".into(), NONE.into())
        );
        assert_eq!(value(Unit::Bytes, Some(f64::NAN)), NONE);
    }

    #[test]
    fn a_change_is_signed_and_never_shown_as_none() {
        assert_eq!(change(&Change::Exact { ratio: 1.01 }), "+1.000 %");
        assert_eq!(change(&Change::Exact { ratio: 1.000_000_1 }), "< +0.001 %");
        assert_eq!(change(&Change::Exact { ratio: 1.0 }), "the same");
        assert_eq!(change(&Change::Exact { ratio: 533_333.333 }), "533\u{202f}333 times");
        assert_eq!(change(&Change::Exact { ratio: 5.0 }), "+400.000 %");
        let interval = Interval { ratio: 1.0, low: 0.98, high: 1.03, differs: false, pairs: 9 };
        assert_eq!(change(&Change::Measured(interval)), "+0.0 % (-2.0 % to +3.0 %)");
        let few = Interval { pairs: 3, ..interval };
        assert_eq!(change(&Change::Measured(few)), "+0.0 % (range -2.0 % to +3.0 %)");
    }
}
