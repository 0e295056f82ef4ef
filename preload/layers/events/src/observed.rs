//! How many objects announce their collections to this layer, and how many to another listener.

use core::sync::atomic::{AtomicU32, Ordering};

static OBSERVED: AtomicU32 = AtomicU32::new(0);
static UNOBSERVED: AtomicU32 = AtomicU32::new(0);

/// Counts an object, which announces its collections to this layer or to another listener.
pub fn count(to_this_layer: bool) {
    let counter = if to_this_layer { &OBSERVED } else { &UNOBSERVED };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Objects that announce collections to this layer, and those that do to another listener.
pub fn counts() -> (u32, u32) {
    (OBSERVED.load(Ordering::Relaxed), UNOBSERVED.load(Ordering::Relaxed))
}
