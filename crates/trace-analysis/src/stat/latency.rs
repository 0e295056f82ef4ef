//! How long the calls took, as percentiles: of a manager, the tail is what users notice.

use hdrhistogram::Histogram;
use heaptoll_trace::{Event, EventKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Percentiles that are reported.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

/// Latencies by kind of call.
#[derive(Debug, Clone)]
pub struct Latencies {
    of: [Histogram<u64>; 3],
}

/// A kind of call whose durations are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Call {
    /// For a new object.
    Allocate,
    /// `realloc` of an object.
    Resize,
    /// Ends an object.
    Free,
}

impl Call {
    /// Its name, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Call::Allocate => "allocate",
            Call::Resize => "resize",
            Call::Free => "free",
        }
    }
}

/// How long one kind of call took, ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyFigures {
    /// Which kind.
    pub call: Call,
    /// Calls.
    pub calls: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Percentile and ns, to three digits.
    pub percentiles: Vec<(f64, u64)>,
    /// The longest, ns.
    pub max_ns: u64,
}

const CALLS: [Call; 3] = [Call::Allocate, Call::Resize, Call::Free];

impl Latencies {
    /// No calls yet. `None` when the histograms cannot be made, which the bounds exclude.
    pub fn new() -> Option<Latencies> {
        let histogram = || Histogram::new_with_bounds(1, u64::from(u32::MAX), 3).ok();
        Some(Latencies { of: [histogram()?, histogram()?, histogram()?] })
    }

    /// Counts a call.
    #[inline]
    pub fn add(&mut self, event: &Event) {
        let call = match event.kind {
            EventKind::Realloc => 1,
            EventKind::Lost | EventKind::Foreign => return,
            kind if kind.frees() => 2,
            _ => 0,
        };
        self.of[call].saturating_record(u64::from(event.latency_ns));
    }

    /// The kinds of call there were.
    pub fn figures(&self) -> Vec<LatencyFigures> {
        let seen = CALLS.iter().zip(&self.of).filter(|(_, histogram)| !histogram.is_empty());
        seen.map(|(&call, histogram)| LatencyFigures {
            call,
            calls: histogram.len(),
            mean_ns: histogram.mean(),
            percentiles: PERCENTILES.map(|p| (p, histogram.value_at_percentile(p))).into(),
            max_ns: histogram.max(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::tests::event;

    #[test]
    fn percentiles_are_those_of_the_calls() {
        let mut latencies = Latencies::new().expect("bounds are fine");
        for ns in 1..=1000 {
            latencies.add(&Event { latency_ns: ns, ..event(EventKind::Malloc, 0, 8) });
        }
        latencies.add(&Event { latency_ns: u32::MAX, ..event(EventKind::Free, 0, 0) });
        latencies.add(&Event { latency_ns: 5, ..event(EventKind::Lost, 0, 0) });
        let figures = latencies.figures();
        assert_eq!(figures.len(), 2);
        assert_eq!((figures[0].call, figures[0].calls, figures[0].max_ns), (Call::Allocate, 1000, 1000));
        assert_eq!(figures[0].percentiles[..3], [(50.0, 500), (90.0, 900), (99.0, 990)]);
        assert_eq!((figures[1].call, figures[1].calls), (Call::Free, 1));
        assert!(figures[1].max_ns.abs_diff(u64::from(u32::MAX)) < u64::from(u32::MAX) / 500);
    }
}
