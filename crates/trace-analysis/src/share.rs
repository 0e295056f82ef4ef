//! Shares: tables of sizes and of lifetimes state parts of all objects and bytes alike.

/// A part of a whole, 0 to 1; of nothing 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
