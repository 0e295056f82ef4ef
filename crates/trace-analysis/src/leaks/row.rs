//! A row under way: call stacks that read alike.

use heaptoll_callsites::Sum;

use super::found::SiteSums;

/// Call stacks that read alike.
#[derive(Default)]
pub(super) struct Row {
    pub(super) sums: SiteSums,
    /// Call stacks that had live objects when `exit` began.
    pub(super) stacks: u64,
    /// The site with the most bytes, and these.
    pub(super) largest: Option<(u32, u64)>,
    /// All sites that ever had live objects, without those of the C library's own objects.
    pub(super) sites: Vec<u32>,
}

impl Row {
    /// Adds a call stack. When `exit` began, `live` of its objects and bytes were live.
    pub(super) fn add(&mut self, site: u32, sums: &SiteSums, live: Sum) {
        self.sites.push(site);
        if live.objects == 0 {
            return;
        }
        self.stacks += 1;
        self.sums.kinds = self.sums.kinds.plus(&sums.kinds);
        self.sums.led = self.sums.led.plus(sums.led);
        self.sums.idle_area += sums.idle_area;
        if self.largest.is_none_or(|(_, most)| live.bytes > most) {
            self.largest = Some((site, live.bytes));
        }
    }
}
