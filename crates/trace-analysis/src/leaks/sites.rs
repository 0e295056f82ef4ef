//! Call stacks as rows, those that read alike together: what they never freed, and how they grow.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use heaptoll_callsites::{Sum, WholeFrame, kept_by};

use super::figures::{FreedLast, KeptSite, Kinds, LeakFigures, SiteLeaks};
use super::found::Found;
use super::growing::Growth;
use super::growth::Run;
use super::row::Row;
use crate::stacks::CallSites;

/// Most rows in the result.
const ROWS: usize = 1000;
/// Rows that are named as those of which most was freed last.
const FREED_LAST: usize = 3;

/// Whether a call stack is suppressed, innermost frame first.
pub type Suppress<'a> = &'a dyn Fn(&[WholeFrame]) -> bool;

/// No suppressions.
pub const LEAVE_NONE_OUT: Suppress<'static> = &|_| false;

/// By what rows are made.
pub struct By<'a, 'b> {
    /// The trace's call stacks; none where it has none.
    pub call_sites: Option<&'a mut CallSites<'b>>,
    /// What is left out.
    pub suppress: Suppress<'a>,
}

impl Found {
    /// The figures. What is about the file is left to the caller.
    pub fn figures(self, by: By<'_, '_>) -> LeakFigures {
        let run = Run::new(&self.series);
        let mut figures = LeakFigures {
            pointers: self.judged_at_bytes.is_some(),
            sites: by.call_sites.is_some(),
            allocated: self.allocated,
            clock_bytes: self.clock_bytes,
            judged_at_bytes: self.judged_at_bytes,
            goes_on: self.goes_on,
            is_short: run.is_none(),
            time_s: self.series.has_time().then(|| self.series.time_ns() as f64 / 1e9),
            misfits: self.misfits,
            freed_last: self.series.freed_last(),
            ..LeakFigures::default()
        };
        let growth = run.map(|run| Growth { series: &self.series, run });
        match by.call_sites {
            Some(call_sites) => self.by_site(call_sites, by.suppress, growth.as_ref(), &mut figures),
            None => {
                self.sums.values().for_each(|sums| figures.kinds = figures.kinds.plus(&sums.kinds));
                figures.rise_of_all = growth.and_then(|growth| growth.of_all(&[]));
            }
        }
        figures
    }

    fn by_site(
        &self,
        call_sites: &mut CallSites<'_>,
        suppress: Suppress<'_>,
        growth: Option<&Growth<'_>>,
        figures: &mut LeakFigures,
    ) {
        let mut left_out = Vec::new();
        let last = self.sums.keys().max().map_or(0, |last| last + 1);
        let (mut rows, mut kept): (Vec<Row>, KeptKinds) = Default::default();
        for site in 0..self.series.sites().max(last) {
            let sums = self.sums.get(&site).copied().unwrap_or_default();
            let (bytes, never_freed) = (sums.kinds.live_at_exit(), sums.kinds.never_freed());
            let stack = call_sites.whole(site);
            if suppress(&stack) {
                figures.suppressed.stacks += u64::from(never_freed.objects > 0);
                figures.suppressed.kinds = figures.suppressed.kinds.plus(&sums.kinds);
                left_out.push(site);
                continue;
            }
            let row = call_sites.row(site);
            if row >= rows.len() {
                rows.resize_with(row + 1, Row::default);
            }
            match kept_by(&stack) {
                Some(caller) => {
                    left_out.push(site);
                    if never_freed.objects > 0 {
                        let of = kept.entry((caller, row)).or_default();
                        *of = of.plus(&sums.kinds);
                    }
                }
                None => {
                    figures.kinds = figures.kinds.plus(&sums.kinds);
                    rows[row].add(site, &sums, bytes);
                }
            }
        }
        figures.kept = kept_sites(kept, call_sites);
        figures.freed_last_sites = self.freed_last_sites(&rows, call_sites);
        if let Some(growth) = growth {
            figures.rise_of_all = growth.of_all(&left_out);
            growth.of_rows(&rows, call_sites, figures);
        }
        leaks(&rows, self.clock_bytes, call_sites, figures);
    }

    fn freed_last_sites(&self, rows: &[Row], call_sites: &CallSites<'_>) -> Vec<FreedLast> {
        let freed = |row: &Row| {
            row.sites.iter().map(|site| self.series.freed_last_of(*site)).fold(Sum::default(), Sum::plus)
        };
        let mut most: Vec<(usize, Sum)> =
            rows.iter().map(freed).enumerate().filter(|(_, freed)| freed.bytes > 0).collect();
        most.sort_by_key(|&(row, freed)| (Reverse(freed.bytes), row));
        most.truncate(FREED_LAST);
        most.into_iter().map(|(row, freed)| FreedLast { name: call_sites.name(row), freed }).collect()
    }
}

/// What the C library keeps for itself, by its function and the row that called it.
type KeptKinds = BTreeMap<(String, usize), Kinds>;

fn kept_sites(kept: KeptKinds, call_sites: &CallSites<'_>) -> Vec<KeptSite> {
    let sites =
        kept.into_iter().map(|((caller, row), kinds)| KeptSite { caller, name: call_sites.name(row), kinds });
    let mut sites: Vec<KeptSite> = sites.collect();
    sites.sort_by_key(|site| Reverse(site.kinds.never_freed().bytes));
    sites
}

/// What was live of rows, worst first.
fn leaks(rows: &[Row], clock_bytes: u64, call_sites: &CallSites<'_>, figures: &mut LeakFigures) {
    let mut all: Vec<(usize, &Row)> = rows.iter().enumerate().filter(|(_, row)| row.stacks > 0).collect();
    all.sort_by_key(|(number, row)| {
        let kinds = &row.sums.kinds;
        let lost = kinds.definite.plus(row.sums.led).bytes * u64::from(kinds.definite.objects > 0);
        let others = [kinds.possible, kinds.idle, kinds.never_freed(), kinds.live_at_exit()];
        (Reverse(lost), others.map(|sum| Reverse(sum.bytes)), *number)
    });
    figures.other_rows = all.len().saturating_sub(ROWS) as u64;
    all.truncate(ROWS);
    let leaks = all.into_iter().map(|(number, row)| {
        let kinds = row.sums.kinds;
        let most = u128::from(kinds.idle.bytes) * u128::from(clock_bytes);
        SiteLeaks {
            name: call_sites.name(number),
            stacks: row.stacks,
            stack: row.largest.map_or_else(Vec::new, |(site, _)| call_sites.whole(site)),
            kinds,
            led: row.sums.led,
            idle_share: (most > 0).then(|| row.sums.idle_area as f64 / most as f64),
        }
    });
    figures.rows = leaks.collect();
}
