//! The time of day, and a seed from it where the user gave none.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A seed of random choices, where the user gave none.
pub fn seed() -> u64 {
    now().subsec_nanos().into()
}
