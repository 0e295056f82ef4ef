//! Call sites whose live bytes rise over the whole run.
//!
//! The floors of the parts of the run are compared by fifths: a site *grows without bound* where the least live bytes of
//! each fifth are above those of the fifth before, it rose in several parts, and the interval of its slope is above 0. So
//! one that only rises at the start is none, nor is a cache that fills and is emptied.

use heaptoll_statistics::{Trend, trend};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::series::PARTS;

/// Fifths of a run.
const FIFTHS: usize = 5;
/// Fewest parts of the run in which a site that grows has risen.
const FEWEST_RISES: usize = 10;

/// A slope with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slope {
    /// The median of the slopes between all pairs of parts of the run.
    pub value: f64,
    /// Lower end of its interval, 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How live bytes rise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rise {
    /// Live bytes a MiB allocated by the whole program.
    pub per_mib: Slope,
    /// Live bytes a second; none where the trace has no time.
    pub per_s: Option<Slope>,
    /// By how much the least live bytes of each fifth of the run are above those of the fifth before.
    pub fifths_bytes: Vec<i64>,
    /// The least live bytes in each of 60 parts of the run.
    pub floors_bytes: Vec<u64>,
}

/// By how much each fifth's floor is above that of the fifth before.
fn fifths(floors: &[u64; PARTS]) -> Vec<i64> {
    let least = floors.chunks(PARTS / FIFTHS).map(|part| part.iter().copied().min().unwrap_or(0));
    let mut before = 0;
    least.map(|floor| (floor as i64).saturating_sub(std::mem::replace(&mut before, floor as i64))).collect()
}

/// Whether floors rise over the whole run; their interval is still to be seen.
pub(super) fn may_grow(floors: &[u64; PARTS]) -> bool {
    let rises = floors.windows(2).filter(|pair| pair[1] > pair[0]).count();
    rises >= FEWEST_RISES && fifths(floors)[1..].iter().all(|rise| *rise > 0)
}

/// How floors rise; none where the interval is not above 0. `ends` has the clock and the time of each part's end.
pub(super) fn rise(floors: &[u64; PARTS], ends: &[(u64, u64)], has_time: bool) -> Option<Rise> {
    const MIB: f64 = 1_048_576.0;
    let points: Vec<(f64, f64)> =
        ends.iter().zip(floors).map(|(end, floor)| (end.0 as f64 / MIB, *floor as f64)).collect();
    let Trend { slope, low, high } = trend(&points).filter(|trend| trend.low > 0.0)?;
    // By the mean rate of the run, and not by slopes over time: parts of equal bytes have next to no time in bursts, and
    // all of an idle hour is in one, so that their median is the rate of the bursts.
    let mib_per_s = ends.last().map_or(0.0, |end| end.0 as f64 / MIB / (end.1 as f64 / 1e9));
    let times = |factor: f64| Slope { value: slope * factor, low: low * factor, high: high * factor };
    let per_mib = times(1.0);
    let per_s = (has_time && mib_per_s.is_finite()).then(|| times(mib_per_s));
    Some(Rise { per_mib, per_s, fifths_bytes: fifths(floors), floors_bytes: floors.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floors(of: impl Fn(u64) -> u64) -> [u64; PARTS] {
        std::array::from_fn(|part| of(part as u64))
    }

    fn grows(of: impl Fn(u64) -> u64) -> Option<Rise> {
        let floors = floors(of);
        let ends: Vec<(u64, u64)> = (1..=PARTS as u64).map(|part| (part << 20, part * 500_000_000)).collect();
        may_grow(&floors).then(|| rise(&floors, &ends, true)).flatten()
    }

    #[test]
    fn a_steady_rise_has_its_slope_by_both_clocks() {
        let found = grows(|part| 1000 + 200 * part).expect("it grows");
        assert_eq!((found.per_mib.value, found.per_mib.low, found.per_mib.high), (200.0, 200.0, 200.0));
        assert_eq!(found.per_s.map(|slope| slope.value), Some(400.0));
        assert_eq!(found.fifths_bytes, [1000, 2400, 2400, 2400, 2400]);
    }

    /// Before, a server's growth a second was that of its bursts: an idle hour counted as one of sixty parts.
    #[test]
    fn growth_a_second_is_that_of_the_whole_run_with_its_idle_times() {
        let floors = floors(|part| 1000 + 200 * part);
        let idle = |part: u64| if part > 30 { 3_600_000_000_000 } else { 0 };
        let ends: Vec<(u64, u64)> =
            (1..=PARTS as u64).map(|part| (part << 20, part * 1_000_000 + idle(part))).collect();
        let per_s = rise(&floors, &ends, true).and_then(|rise| rise.per_s).expect("it grows");
        let gained = 200.0 * 60.0;
        assert!((per_s.value - gained / 3600.06).abs() < 1e-6, "{per_s:?}");
    }

    #[test]
    fn what_rises_at_the_start_comes_and_goes_or_rises_in_few_steps_does_not_grow() {
        assert_eq!(grows(|part| part.min(20) * 1000), None, "start-up");
        assert_eq!(grows(|part| (part % 15) * 1000), None, "a cache");
        assert_eq!(grows(|part| part / 12 * 1000), None, "five objects");
        assert_eq!(grows(|part| if part < 50 { part * 10 } else { 0 }), None, "freed at the end");
        assert_eq!(grows(|_| 7), None);
        assert!(grows(|part| (part + 1).isqrt() * 1000 + part).is_some(), "ever more slowly");
    }
}
