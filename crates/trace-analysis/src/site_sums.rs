//! Sums by call site, and what each had live when the whole program had most.
//!
//! A snapshot of all sites at every new maximum would cost more than everything else. So each site keeps its current
//! sums and when they last changed; when they change again and the maximum was in between, the sums before the change
//! are those at the maximum.

use heaptoll_callsites::Sum;

/// Sites that are distinguished; those with higher numbers are merged into the last.
pub const SITES: u32 = 1 << 20;

/// One site's sums.
#[derive(Debug, Clone, Copy, Default)]
pub struct SiteTotals<M = ()> {
    /// Objects made there, and the bytes they requested, with what they grew by later.
    pub allocated: Sum,
    pub live: Sum,
    pub at_peak: Sum,
    /// What else an analysis sums up.
    pub more: M,
    /// Number of the change that changed `live` last.
    changed: u64,
}

impl<M> SiteTotals<M> {
    /// An object of `bytes` was allocated.
    #[inline]
    pub fn allocate(&mut self, bytes: u64) {
        self.allocated.add(bytes);
        self.live.add(bytes);
    }

    /// An object changed its size.
    #[inline]
    pub fn resize(&mut self, old: u64, new: u64) {
        self.allocated.bytes = self.allocated.bytes.saturating_add(new.saturating_sub(old));
        self.live.resize(old, new);
    }

    /// An object of `bytes` ended.
    #[inline]
    pub fn free(&mut self, bytes: u64) {
        self.live = self.live.minus(Sum { objects: 1, bytes });
    }

    #[inline(always)]
    fn settle(&mut self, peak: u64) {
        if self.changed <= peak {
            self.at_peak = self.live;
        }
    }
}

/// All sites.
#[derive(Debug, Clone, Default)]
pub struct SiteSums<M = ()> {
    table: Vec<SiteTotals<M>>,
}

impl<M: Copy + Default> SiteSums<M> {
    /// The sums of a site that the change of this number (from 1) is about to change; the maximum so far was at change
    /// `peak`.
    #[inline]
    pub fn at(&mut self, site: u32, change: u64, peak: u64) -> &mut SiteTotals<M> {
        let index = site.min(SITES - 1) as usize;
        if index >= self.table.len() {
            self.table.resize(index + 1, SiteTotals::default());
        }
        let totals = &mut self.table[index];
        totals.settle(peak);
        totals.changed = change;
        totals
    }

    /// Every site with an allocation, by number.
    pub fn finish(mut self, peak: u64) -> impl Iterator<Item = (u32, SiteTotals<M>)> {
        self.table.iter_mut().for_each(|totals| totals.settle(peak));
        (0..).zip(self.table).filter(|(_, totals)| totals.allocated != Sum::default())
    }
}
