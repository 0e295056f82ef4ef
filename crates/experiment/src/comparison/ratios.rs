//! Ratios of one stack to another.

use heaptoll_statistics::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ratios of one stack to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratios {
    /// CPU time.
    pub cpu: Option<Interval>,
    /// Elapsed time.
    pub wall: Option<Interval>,
    /// Peak resident memory.
    pub peak_rss: Option<Interval>,
}

impl Ratios {
    /// Those of a comparison; none where it was not made.
    pub fn of(intervals: Option<&[Option<Interval>]>) -> Ratios {
        match intervals {
            Some([cpu, wall, peak_rss]) => Ratios { cpu: *cpu, wall: *wall, peak_rss: *peak_rss },
            _ => Ratios::default(),
        }
    }
}
