//! What each call site allocates, and which objects of it are held by hidden pointers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::site_sums::SITES;
use crate::stacks::CallSites;

/// All objects of the call stacks that read alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphSite {
    /// The call stack as text.
    pub name: String,
    /// Objects made there.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, objects held by hidden pointers.
    pub hidden_objects: u64,
    /// Their bytes.
    pub hidden_bytes: u64,
}

/// Sums by site.
#[derive(Debug, Default)]
pub(super) struct SiteSums {
    sums: Vec<GraphSite>,
}

impl SiteSums {
    /// An object is made at a site; 0 is "not recorded", and has no sum.
    pub fn allocate(&mut self, site: u32, bytes: u64) {
        if let Some(sum) = self.sum(site) {
            sum.objects += 1;
            sum.bytes = sum.bytes.saturating_add(bytes);
        }
    }

    /// One of its objects is held by a hidden pointer.
    pub fn hidden(&mut self, site: u32, bytes: u64) {
        if let Some(sum) = self.sum(site) {
            sum.hidden_objects += 1;
            sum.hidden_bytes = sum.hidden_bytes.saturating_add(bytes);
        }
    }

    fn sum(&mut self, site: u32) -> Option<&mut GraphSite> {
        let site = site.min(SITES - 1) as usize;
        if site >= self.sums.len() && site > 0 {
            self.sums.resize(site + 1, GraphSite::default());
        }
        self.sums.get_mut(site).filter(|_| site > 0)
    }

    /// By row, the most bytes first.
    pub fn figures(self, call_sites: &mut CallSites) -> Vec<GraphSite> {
        let mut rows: std::collections::BTreeMap<usize, GraphSite> = Default::default();
        for (site, sum) in (0..).zip(self.sums).filter(|(_, sum)| sum.objects > 0) {
            let all = rows.entry(call_sites.row_of_sums(site)).or_default();
            all.objects += sum.objects;
            all.bytes = all.bytes.saturating_add(sum.bytes);
            all.hidden_objects += sum.hidden_objects;
            all.hidden_bytes = all.hidden_bytes.saturating_add(sum.hidden_bytes);
        }
        // The text of a row is known when all its sites are.
        let mut rows: Vec<GraphSite> =
            rows.into_iter().map(|(row, sum)| GraphSite { name: call_sites.name(row), ..sum }).collect();
        rows.sort_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Frame, Site, Sites};

    use super::*;

    #[test]
    fn stacks_that_read_alike_are_one_row_and_unrecorded_ones_none() {
        let frame = |function: &str, offset| Frame {
            object: "/bin/p".into(),
            offset,
            function: function.into(),
            line: String::new(),
        };
        let sites = Sites {
            sites: [vec![], vec![0], vec![1], vec![2]].map(|frames| Site { frames }).into(),
            frames: vec![frame("make", 1), frame("make", 2), frame("hide", 3)],
        };
        let mut sums = SiteSums::default();
        for (site, bytes) in [(0, 1000), (1, 8), (2, 16), (3, 100)] {
            sums.allocate(site, bytes);
        }
        sums.hidden(3, 100);
        sums.hidden(0, 1000);
        let rows = sums.figures(&mut CallSites::new(&sites, 3));
        let found: Vec<_> = rows.iter().map(|row| (row.objects, row.bytes, row.hidden_bytes)).collect();
        assert_eq!(found, [(1, 100, 100), (2, 24, 0)]);
        assert!(rows[0].name.contains("hide") && rows[1].name.contains("make"), "{rows:?}");
    }
}
