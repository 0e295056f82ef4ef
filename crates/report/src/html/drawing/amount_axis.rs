//! Ticks of logarithmic axes of amounts: round numbers, written out.

/// Ticks that are enough.
const MOST: usize = 11;

/// Places and labels of ticks between these ends.
pub(super) fn ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let halves = (2..=18).map(|half| f64::from(half) / 2.0).collect();
    let places = round_numbers((0.999 * low, 1.001 * high), vec![halves], MOST);
    places.into_iter().map(|place| (place, label(place))).collect()
}

/// Numbers of few digits between these ends, as many as are at most wanted: of these digits, then of ever fewer, then
/// powers of ten.
pub(super) fn round_numbers((low, high): (f64, f64), mut finest: Vec<Vec<f64>>, most: usize) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let of = |digits: &[f64], every: usize| -> Vec<f64> {
        let decades = decades.clone().filter(|decade| decade.rem_euclid(every as i32) == 0);
        let all = decades.flat_map(|decade| digits.iter().map(move |digit| digit * 10f64.powi(decade)));
        all.filter(|number| (low..=high).contains(number)).collect()
    };
    finest.extend([vec![1.0, 1.5, 2.0, 3.0, 5.0, 7.0], vec![1.0, 2.0, 5.0]]);
    let fine = finest.iter().map(|digits| of(digits, 1));
    let all = fine.chain((1..100).map(|every| of(&[1.0], every)));
    all.into_iter().find(|numbers| numbers.len() <= most).unwrap_or_default()
}

/// In thousands, millions and so on from ten thousand on.
pub(super) fn label(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units.into_iter().filter(|_| value.abs() >= 1e4).find(|(unit, _)| value.abs() >= 0.999 * unit);
    let (unit, word) = unit.unwrap_or((1.0, ""));
    // Six digits: powers of ten are not exact below one.
    let digits: f64 = format!("{:.5e}", value / unit).parse().unwrap_or(value / unit);
    format!("{digits}{word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        ticks((low, high)).into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn round_numbers_are_written_out() {
        assert_eq!(labels(16.0, 384.0), ["20", "30", "50", "70", "100", "150", "200", "300"]);
        assert_eq!(labels(20.0, 1800.0), ["20", "50", "100", "200", "500", "1000"]);
        assert_eq!(labels(8.0, 1e6), ["10", "100", "1000", "10k", "100k", "1M"]);
        assert_eq!(labels(0.0009, 0.2), ["0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2"]);
        assert_eq!(labels(41.0, 51.0), ["45", "50"]);
    }

    #[test]
    fn they_are_few_over_any_range() {
        for (low, high) in [(1.0, 1e12), (1e-9, 1e15), (3.0, 9000.0), (1.0, 2.0), (1e-300, 1e300)] {
            let count = labels(low, high).len();
            assert!((2..=MOST).contains(&count), "{low} to {high}: {:?}", labels(low, high));
        }
    }
}
