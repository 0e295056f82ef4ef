//! Sizes and shares as the ledger shows them.

use heaptoll_report::format::{NONE, count};

/// Bytes of a MiB, for axes.
pub const MIB: f64 = 1024.0 * 1024.0;

/// Bytes as KiB.
pub fn kib(bytes: u64) -> String {
    count(bytes as f64 / 1024.0)
}

/// A part of a whole as a percentage without its sign; of nothing a dash.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.into() } else { format!("{:.1}", part as f64 * 100.0 / whole as f64) }
}
