//! What call sites hold, by rows: those that read alike are one.

use heaptoll_ledger::{Pin, Pins};
use heaptoll_trace_analysis::stacks::CallSites;

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
    let mut by_row: Vec<(usize, Pin)> = Vec::new();
    for pin in &pins.sites {
        let row = call_sites.row(pin.site);
        match by_row.iter_mut().find(|(known, _)| *known == row) {
            Some((_, sum)) => sum.add(pin),
            None => by_row.push((row, *pin)),
        }
    }
    by_row.sort_by_key(|(_, pin)| std::cmp::Reverse(pin.bytes()));
    by_row.into_iter().map(|(row, pin)| Row { row, name: call_sites.name(row), pin }).collect()
}
