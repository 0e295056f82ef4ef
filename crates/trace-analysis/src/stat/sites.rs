//! The figures of call sites: what each allocated, and had live when the whole program had most.

use std::collections::HashMap;

use heaptoll_callsites::{Sum, WholeFrame};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::site_sums::{SiteSums, SiteTotals};
use crate::stacks::CallSites;

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

/// Every site with an allocation, by number; most was live at the change `peak`.
pub(super) fn figures(sums: SiteSums, peak: u64, call_sites: &mut CallSites) -> Vec<SiteFigures> {
    // The text of a row is known when all its sites are.
    let used: Vec<(u32, SiteTotals, usize)> =
        sums.finish(peak).map(|(site, totals)| (site, totals, call_sites.row_of_sums(site))).collect();
    let figures = used.into_iter().map(|(site, totals, row)| SiteFigures {
        site,
        name: call_sites.name(row),
        stack: call_sites.numbers(site).to_vec(),
        objects: totals.allocated.objects,
        bytes: totals.allocated.bytes,
        at_peak: totals.at_peak,
        at_exit: totals.live,
    });
    figures.collect()
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Frame, Site, Sites};

    use super::*;

    #[test]
    fn what_a_site_had_at_the_peak_is_what_it_had_then() {
        let mut table = SiteSums::default();
        table.at(1, 1, 0).allocate(100); // peak 1
        table.at(2, 2, 1).allocate(50); // peak 2
        table.at(1, 3, 2).free(100);
        table.at(1, 4, 2).allocate(20);
        table.at(2, 5, 2).resize(50, 200); // 220: peak 5
        table.at(2, 6, 5).free(200);
        table.at(3, 7, 5).allocate(1);
        let sites = Sites::default();
        let mut call_sites = CallSites::new(&sites, 3);
        let figures = figures(table, 5, &mut call_sites);
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
        let mut table = SiteSums::default();
        table.at(1, 1, 0).allocate(100);
        table.at(2, 2, 1).allocate(150);
        table.at(1, 3, 2).free(100);
        table.at(3, 4, 2).allocate(1);
        let mut call_sites = CallSites::new(&sites, 3);
        let figures = figures(table, 2, &mut call_sites);
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
