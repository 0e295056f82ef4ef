//! Sums by call site, and what each had live when the whole program had most.
//!
//! A snapshot of all sites at every new maximum would cost more than everything else. So each site keeps its current
//! sums and when they last changed; when they change again and the maximum was in between, the sums before the change
//! are those at the maximum.

use std::collections::HashMap;

use heaptoll_callsites::WholeFrame;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stacks::CallSites;
use crate::sum::Sum;

/// Sites that are distinguished; those with higher numbers are merged into the last.
const SITES: usize = 1 << 20;

/// One site's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SiteTotals {
    objects: u64,
    bytes: u64,
    live: Sum,
    at_peak: Sum,
    /// Number of the event that changed `live` last.
    changed: u64,
}

/// All sites.
#[derive(Debug, Clone, Default)]
pub struct SiteTable {
    table: Vec<SiteTotals>,
}

/// The figures of one call stack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteFigures {
    /// Number of the site in the trace.
    pub site: u32,
    /// The call stack as text.
    pub name: String,
    /// All its frames, innermost first: indices of [`StatFigures::frames`](super::StatFigures::frames).
    pub stack: Vec<u32>,
    /// Objects made there.
    pub objects: u64,
    /// Bytes they requested, with what they grew by later.
    pub bytes: u64,
    /// Alive when the program had most bytes alive.
    pub at_peak: Sum,
    /// Never freed.
    pub at_exit: Sum,
}

/// The figures of all call stacks that read alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallSiteFigures {
    /// Their text.
    pub name: String,
    /// Number of them.
    pub stacks: u64,
    /// All frames of the one with the most bytes, innermost first.
    pub stack: Vec<WholeFrame>,
    /// Objects made there.
    pub objects: u64,
    /// Bytes they requested, with what they grew by later.
    pub bytes: u64,
    /// Alive when the program had most bytes alive.
    pub at_peak: Sum,
    /// Never freed.
    pub at_exit: Sum,
}

/// Sites merged by their text, most bytes first.
pub(super) fn together(sites: &[SiteFigures], call_sites: &mut CallSites) -> Vec<CallSiteFigures> {
    let mut rows: HashMap<&str, (CallSiteFigures, &SiteFigures)> = HashMap::new();
    for site in sites {
        let (row, largest) = rows.entry(&site.name).or_insert_with(|| (CallSiteFigures::default(), site));
        if site.bytes > largest.bytes {
            *largest = site;
        }
        row.stacks += 1;
        row.objects += site.objects;
        row.bytes = row.bytes.saturating_add(site.bytes);
        row.at_peak = row.at_peak.plus(site.at_peak);
        row.at_exit = row.at_exit.plus(site.at_exit);
    }
    let mut rows: Vec<(CallSiteFigures, &SiteFigures)> = rows.into_values().collect();
    rows.sort_by_key(|(row, largest)| (std::cmp::Reverse(row.bytes), largest.site));
    let whole = |(row, largest): (CallSiteFigures, &SiteFigures)| CallSiteFigures {
        name: largest.name.clone(),
        stack: call_sites.whole(largest.site),
        ..row
    };
    rows.into_iter().map(whole).collect()
}

impl SiteTable {
    /// An object of `bytes` was allocated at `site` by event number `event` (from 1); the maximum so far was at event
    /// `peak`.
    #[inline]
    pub fn allocate(&mut self, site: u32, bytes: u64, event: u64, peak: u64) {
        let totals = self.at(site, event, peak);
        totals.objects += 1;
        totals.bytes = totals.bytes.saturating_add(bytes);
        totals.live.add(bytes);
    }

    /// An object of `site` changed its size.
    #[inline]
    pub fn resize(&mut self, site: u32, old: u64, new: u64, event: u64, peak: u64) {
        let totals = self.at(site, event, peak);
        totals.bytes = totals.bytes.saturating_add(new.saturating_sub(old));
        totals.live.bytes = totals.live.bytes.saturating_sub(old).saturating_add(new);
    }

    /// An object of `site` ended.
    #[inline]
    pub fn free(&mut self, site: u32, bytes: u64, event: u64, peak: u64) {
        let totals = self.at(site, event, peak);
        totals.live.objects = totals.live.objects.saturating_sub(1);
        totals.live.bytes = totals.live.bytes.saturating_sub(bytes);
    }

    #[inline]
    fn at(&mut self, site: u32, event: u64, peak: u64) -> &mut SiteTotals {
        let index = (site as usize).min(SITES - 1);
        if index >= self.table.len() {
            self.table.resize(index + 1, SiteTotals::default());
        }
        let totals = &mut self.table[index];
        totals.settle(peak);
        totals.changed = event;
        totals
    }

    /// Every site with an allocation, by number.
    pub fn figures(mut self, peak: u64, call_sites: &mut CallSites) -> Vec<SiteFigures> {
        self.table.iter_mut().for_each(|totals| totals.settle(peak));
        let used = self.table.iter().enumerate().filter(|(_, totals)| totals.objects > 0);
        // The text of a row is known when all its sites are.
        let mut row = |site| match site {
            last if last == SITES - 1 => call_sites.text("all further sites"),
            site => call_sites.row(site as u32),
        };
        let used: Vec<(usize, &SiteTotals, usize)> =
            used.map(|(site, totals)| (site, totals, row(site))).collect();
        used.into_iter()
            .map(|(site, totals, row)| SiteFigures {
                site: site as u32,
                name: call_sites.name(row),
                stack: call_sites.numbers(site as u32).to_vec(),
                objects: totals.objects,
                bytes: totals.bytes,
                at_peak: totals.at_peak,
                at_exit: totals.live,
            })
            .collect()
    }
}

impl SiteTotals {
    #[inline(always)]
    fn settle(&mut self, peak: u64) {
        if self.changed <= peak {
            self.at_peak = self.live;
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Frame, Site, Sites};

    use super::*;

    #[test]
    fn what_a_site_had_at_the_peak_is_what_it_had_then() {
        let mut table = SiteTable::default();
        table.allocate(1, 100, 1, 0); // peak 1
        table.allocate(2, 50, 2, 1); // peak 2
        table.free(1, 100, 3, 2);
        table.allocate(1, 20, 4, 2);
        table.resize(2, 50, 200, 5, 2); // 220: peak 5
        table.free(2, 200, 6, 5);
        table.allocate(3, 1, 7, 5);
        let sites = Sites::default();
        let mut call_sites = CallSites::new(&sites, 3);
        let figures = table.figures(5, &mut call_sites);
        let peaks: Vec<(u32, Sum)> = figures.iter().map(|site| (site.site, site.at_peak)).collect();
        let sum = |objects, bytes| Sum { objects, bytes };
        assert_eq!(peaks, [(1, sum(1, 20)), (2, sum(1, 200)), (3, sum(0, 0))]);
        assert_eq!((figures[0].objects, figures[0].bytes, figures[0].at_exit), (2, 120, sum(1, 20)));
        assert_eq!((figures[1].bytes, figures[1].at_exit), (200, sum(0, 0)));
        assert_eq!(figures[2].name, "unknown site 3");
    }

    #[test]
    fn sites_that_read_alike_are_summed_up() {
        let frame = |function: &str| Frame { function: function.into(), ..Frame::default() };
        let sites = Sites {
            sites: [vec![], vec![0, 2], vec![1, 2], vec![3]].map(|frames| Site { frames }).into(),
            frames: ["std::a", "std::b", "f", "g"].map(frame).into(),
        };
        let mut table = SiteTable::default();
        table.allocate(1, 100, 1, 0);
        table.allocate(2, 150, 2, 1);
        table.free(1, 100, 3, 2);
        table.allocate(3, 1, 4, 2);
        let mut call_sites = CallSites::new(&sites, 3);
        let figures = table.figures(2, &mut call_sites);
        assert_eq!(
            figures.iter().map(|site| site.stack.clone()).collect::<Vec<_>>(),
            [vec![0, 2], vec![1, 2], vec![3]]
        );
        let rows = together(&figures, &mut call_sites);
        let sum = |objects, bytes| Sum { objects, bytes };
        assert_eq!((rows.len(), rows[0].name.as_str(), rows[0].stacks), (2, "f", 2));
        assert_eq!((rows[0].objects, rows[0].bytes), (2, 250));
        assert_eq!((rows[0].at_peak, rows[0].at_exit), (sum(2, 250), sum(1, 150)));
        assert_eq!(rows[0].stack[0].function, "std::b", "the stack with the most bytes");
        assert_eq!((rows[1].name.as_str(), rows[1].stacks, rows[1].at_exit), ("g", 1, sum(1, 1)));
    }
}
