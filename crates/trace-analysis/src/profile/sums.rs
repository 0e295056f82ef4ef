//! Live objects of the whole program, and what a call stack has beside the sums of every analysis.

use heaptoll_callsites::Sum;

use crate::site_sums::SiteTotals;

/// The sums of one stack.
pub type Totals = SiteTotals<Own>;

/// What is summed up of a stack by itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Own {
    /// Its live objects when it had most bytes.
    pub peak: Sum,
    pub lifetime_ns: u64,
}

impl Own {
    /// An object lived so long.
    pub fn lived(&mut self, ns: u64) {
        self.lifetime_ns = self.lifetime_ns.saturating_add(ns);
    }
}

impl Totals {
    /// Notes a new maximum of this stack's own live bytes.
    pub fn own_peak(&mut self) {
        if self.live.bytes > self.more.peak.bytes || self.more.peak.objects == 0 {
            self.more.peak = self.live;
        }
    }
}

/// Live objects of the whole program, and when it had most.
#[derive(Debug, Clone, Copy, Default)]
pub struct Now {
    pub live: Sum,
    peak_bytes: u64,
    /// Number of the current change, and of the one that led to the peak.
    pub change: u64,
    pub peak: u64,
}

impl Now {
    /// Another change begins.
    pub fn change(&mut self) {
        self.change += 1;
    }

    /// Whether the bytes are more than ever before; then this is the peak.
    pub fn is_peak(&mut self) -> bool {
        let more = self.live.bytes > self.peak_bytes;
        if more {
            self.peak_bytes = self.live.bytes;
            self.peak = self.change;
        }
        more
    }
}
