//! Which rows grow, and how all live bytes do.

use std::cmp::Reverse;

use super::figures::{Growing, GrownMost};
use super::growth::{Rise, may_grow, rise};
use super::row::Row;
use super::series::{LiveSeries, PARTS};
use crate::stacks::CallSites;
use crate::sum::Sum;

/// Most rows whose slope is computed: those that rose most.
const SLOPES: usize = 100;
/// Rows that are named as those that hold what all live bytes grew by.
const MOST: usize = 5;
/// Parts of a third of the run.
const THIRD: usize = PARTS / 3;

/// The live bytes of a run that is long enough to have parts.
pub(super) struct Growth<'a> {
    pub(super) series: &'a LiveSeries,
    /// The clock and the time at the end of each part.
    pub(super) ends: Vec<(u64, u64)>,
    pub(super) has_time: bool,
}

impl Growth<'_> {
    /// How all live bytes rise without those of some sites; none where they do not over the whole run.
    pub(super) fn of_all(&self, left_out: &[u32]) -> Option<Rise> {
        let mut without = [0; PARTS];
        left_out.iter().for_each(|site| self.series.add_floors(*site, &mut without));
        let mut floors = self.series.floors_of_all();
        floors.iter_mut().zip(without).for_each(|(floor, less)| *floor = floor.saturating_sub(less));
        self.rise(&floors)
    }

    fn rise(&self, floors: &[u64; PARTS]) -> Option<Rise> {
        may_grow(floors).then(|| rise(floors, &self.ends, self.has_time)).flatten()
    }

    fn floors(&self, row: &Row) -> [u64; PARTS] {
        let mut floors = [0; PARTS];
        row.sites.iter().for_each(|site| self.series.add_floors(*site, &mut floors));
        floors
    }

    /// Rows whose live bytes rise over the whole run, steepest first.
    pub(super) fn of_rows(&self, rows: &[Row], call_sites: &CallSites<'_>) -> Vec<Growing> {
        let floors = rows.iter().map(|row| self.floors(row)).enumerate();
        let mut candidates: Vec<(usize, [u64; PARTS])> =
            floors.filter(|(_, floors)| may_grow(floors)).collect();
        candidates.sort_by_key(|(number, floors)| (Reverse(floors[PARTS - 1] - floors[0]), *number));
        candidates.truncate(SLOPES);
        let grown = candidates.into_iter().filter_map(|(number, floors)| {
            let row = &rows[number];
            let site = row.largest.map(|(site, _)| site).or_else(|| row.sites.first().copied());
            let had = row.sites.iter().map(|site| self.series.before_last_frees(*site));
            Some(Growing {
                name: call_sites.name(number),
                stack: site.map_or_else(Vec::new, |site| call_sites.whole(site)),
                at_end: had.fold(Sum::default(), Sum::plus),
                rise: self.rise(&floors)?,
            })
        });
        let mut grown: Vec<Growing> = grown.collect();
        grown.sort_by(|one, other| other.rise.per_mib.value.total_cmp(&one.rise.per_mib.value));
        grown
    }

    /// Rows that have more in the last third of the run than in the first, most first.
    pub(super) fn most(&self, rows: &[Row], call_sites: &CallSites<'_>) -> Vec<GrownMost> {
        let mean = |floors: &[u64]| floors.iter().sum::<u64>() / THIRD as u64;
        let floors = rows.iter().map(|row| self.floors(row)).enumerate();
        let thirds =
            floors.map(|(row, floors)| (row, mean(&floors[..THIRD]), mean(&floors[PARTS - THIRD..])));
        let mut all: Vec<_> = thirds.filter(|(_, first, last)| last > first).collect();
        all.sort_by_key(|(_, first, last)| Reverse(last - first));
        let most = all.into_iter().take(MOST).map(|(row, first_third_bytes, last_third_bytes)| GrownMost {
            name: call_sites.name(row),
            first_third_bytes,
            last_third_bytes,
        });
        most.collect()
    }
}
