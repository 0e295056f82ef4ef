//! Axes: their ends, and ticks that a reader would choose.

use super::amount_axis;
use super::picture::Scale;
use crate::document::Axis;
use crate::format::printable;

/// Steps between the ticks of an even axis, at most.
const STEPS: f64 = 6.0;

/// An axis with a place for these values and, on either side, for this share of what they span.
pub(super) fn scale(axis: &Axis, values: impl Iterator<Item = f64>, margin: f64) -> Scale {
    if !axis.names.is_empty() {
        return named(&axis.title, &axis.names, 1.0);
    }
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite() && (!axis.log || *value > 0.0)) {
        (low, high) = (low.min(value), high.max(value));
    }
    let ends = if axis.log { spread(low, high, margin) } else { widened(low, high, margin) };
    let ticks = match axis.log {
        true => amount_axis::ticks(ends),
        false => even_ticks(ends).into_iter().map(|tick| (tick, amount_axis::label(tick))).collect(),
    };
    Scale { title: printable(&axis.title), log: axis.log, named: false, ends, ticks }
}

/// An axis with a name at 0, `step`, twice `step`...: -1 for names from the top to the bottom.
pub(super) fn named(title: &str, names: &[String], step: f64) -> Scale {
    let ticks =
        names.iter().enumerate().map(|(place, name)| (step * place as f64, printable(name))).collect();
    let last = step * names.len().saturating_sub(1) as f64;
    let ends = (last.min(0.0) - 0.5, last.max(0.0) + 0.5);
    Scale { title: printable(title), log: false, named: true, ends, ticks }
}

fn spread(low: f64, high: f64, margin: f64) -> (f64, f64) {
    let factor = if low < high { (high / low).powf(margin) } else { 1.5 };
    (low / factor, high * factor)
}

fn widened(low: f64, high: f64, margin: f64) -> (f64, f64) {
    let more = match high - low {
        span if span > 0.0 => span * margin,
        _ if low == 0.0 => 1.0,
        _ => low.abs() / 2.0,
    };
    // No amount is below nothing.
    (if low >= 0.0 { (low - more).max(0.0) } else { low - more }, high + more)
}

/// Multiples of 1, 2 or 5 at a power of ten.
fn even_ticks((low, high): (f64, f64)) -> Vec<f64> {
    let least = (high - low) / STEPS;
    let power = 10f64.powf(least.log10().floor());
    let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * power >= least).unwrap_or(10.0);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|tick| tick as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], margin: f64) -> Vec<String> {
        let scale = scale(&Axis::even("MiB"), values.iter().copied(), margin);
        scale.ticks.into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn even_axes_have_round_ticks_and_never_begin_below_nothing() {
        assert_eq!(labels(&[0.0, 1.0, f64::NAN], 0.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&[3.0, 150_000.0], 0.04), ["0", "50k", "100k", "150k"]);
        assert_eq!(labels(&[-2e6, 2e6], 0.0), ["-2M", "-1M", "0", "1M", "2M"]);
        assert_eq!(labels(&[41.0], 0.04), ["30", "40", "50", "60"]);
        assert_eq!(labels(&[0.0], 0.04), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        for (low, high) in [(0.0, 1e-9), (-3e12, 7e15), (1.0, 1.0001)] {
            assert!((2..=7).contains(&even_ticks((low, high)).len()), "{low} to {high}");
        }
    }

    #[test]
    fn names_have_a_place_each() {
        let names = ["a".to_owned(), "b".to_owned()];
        assert_eq!(named("", &names, 1.0).ends, (-0.5, 1.5));
        let down = named("", &names, -1.0);
        assert_eq!((down.ends, down.ticks[1].0), ((-1.5, 0.5), -1.0));
    }
}
