//! What was found in a trace, before call stacks are made rows.

use std::collections::HashMap;

use heaptoll_callsites::Sum;

use super::figures::Kinds;
use super::series::LiveSeries;

/// The sums of one call stack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SiteSums {
    pub(super) kinds: Kinds,
    pub(super) led: Sum,
    /// Bytes times bytes allocated since the last touch, of the idle ones.
    pub(super) idle_area: u128,
}

/// Adds to each call stack what was freed after `exit` had begun.
pub(super) fn add_freed_after_exit(freed: &HashMap<u32, Sum>, sums: &mut HashMap<u32, SiteSums>) {
    for (site, freed) in freed {
        sums.entry(*site).or_default().kinds.freed_after_exit = *freed;
    }
}

/// What was found in a trace, before call stacks are made rows.
#[derive(Debug)]
pub struct Found {
    pub(super) sums: HashMap<u32, SiteSums>,
    pub(super) series: LiveSeries,
    pub(super) allocated: Sum,
    pub(super) clock_bytes: u64,
    /// The root point that was judged; none of a plain trace.
    pub(super) judged_at_bytes: Option<u64>,
    /// The program went on after it.
    pub(super) goes_on: bool,
    pub(super) misfits: u64,
}
