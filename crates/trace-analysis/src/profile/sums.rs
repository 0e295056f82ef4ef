//! The sums of each call stack. What a stack had when the whole program had most is found as in
//! [`stat`](crate::stat): a stack keeps its sums and when they last changed; when they change again and the maximum was
//! in between, the sums before the change are those at the maximum.

use crate::sum::Sum;

/// Stacks that are distinguished; those with higher numbers are merged into the last.
pub const SITES: u32 = 1 << 20;

/// The sums of one stack.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub allocated: Sum,
    pub live: Sum,
    pub at_peak: Sum,
    pub own_peak: Sum,
    pub lifetime_ns: u64,
    /// The change that was the last one of `live`.
    changed: u64,
}

impl Totals {
    /// Notes a new maximum of this stack's own live bytes.
    pub fn own_peak(&mut self) {
        if self.live.bytes > self.own_peak.bytes || self.own_peak.objects == 0 {
            self.own_peak = self.live;
        }
    }

    fn settle(&mut self, peak: u64) {
        if self.changed <= peak {
            self.at_peak = self.live;
        }
    }
}

/// Live objects of the whole program, and when it had most.
#[derive(Debug, Clone, Copy, Default)]
pub struct Now {
    pub bytes: u64,
    pub objects: u64,
    peak_bytes: u64,
    /// Number of the current change, and of the one that led to the peak.
    change: u64,
    peak: u64,
}

impl Now {
    /// Another change begins.
    pub fn change(&mut self) {
        self.change += 1;
    }

    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub fn resize(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
    }

    pub fn remove(&mut self, bytes: u64, is_object: bool) {
        self.objects = self.objects.saturating_sub(u64::from(is_object));
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Whether the bytes are more than ever before; then this is the peak.
    pub fn is_peak(&mut self) -> bool {
        let more = self.bytes > self.peak_bytes;
        if more {
            self.peak_bytes = self.bytes;
            self.peak = self.change;
        }
        more
    }
}

/// The sums of all stacks.
#[derive(Debug, Default)]
pub struct SiteSums {
    table: Vec<Totals>,
}

impl SiteSums {
    /// The sums of a stack that the current change is about to change.
    pub fn at(&mut self, site: u32, now: &Now) -> &mut Totals {
        let index = site.min(SITES - 1) as usize;
        if index >= self.table.len() {
            self.table.resize(index + 1, Totals::default());
        }
        let totals = &mut self.table[index];
        totals.settle(now.peak);
        totals.changed = now.change;
        totals
    }

    /// All stacks with a value, by number.
    pub fn finish(mut self, now: &Now) -> impl Iterator<Item = (u32, Totals)> {
        self.table.iter_mut().for_each(|totals| totals.settle(now.peak));
        let used = |totals: &Totals| totals.allocated != Sum::default();
        (0..).zip(self.table).filter(move |(_, totals)| used(totals))
    }
}
