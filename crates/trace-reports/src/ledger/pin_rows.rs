//! What call sites hold, by rows: those that read alike are one.

use heaptoll_ledger::{Pin, Pins};
use heaptoll_trace_analysis::stacks::CallSites;

use super::site_rows::merged;

/// What the sites that read alike hold together.
pub struct Row {
    /// Number among the call sites that read alike.
    pub row: usize,
    /// As tables show it.
    pub name: String,
    /// What they hold.
    pub pin: Pin,
}

/// The sites of one snapshot, those that hold most first; stacks that read alike are one.
pub fn rows(pins: &Pins, call_sites: &mut CallSites) -> Vec<Row> {
    let merged = merged(&pins.sites, call_sites, |pin| pin.site, Pin::add, Pin::bytes);
    merged.into_iter().map(|(row, pin)| Row { row, name: call_sites.name(row), pin }).collect()
}
