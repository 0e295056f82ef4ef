//! Which rows grow, and how all live bytes do.

use std::cmp::Reverse;

use heaptoll_callsites::Sum;

use super::figures::{Filled, Growing, GrownMost, LeakFigures};
use super::growth::{Floors, Rise, Run, troughs};
use super::row::Row;
use super::series::{Clock, LiveSeries, PARTS};
use crate::stacks::CallSites;

/// Most rows whose slope is computed: those that rose most.
const SLOPES: usize = 100;
/// Rows that are named as those that hold what all live bytes grew by.
const MOST: usize = 5;

/// The live bytes of a run that is long enough to show growth.
pub(super) struct Growth<'a> {
    pub(super) series: &'a LiveSeries,
    pub(super) run: Run,
}

impl Growth<'_> {
    /// How all live bytes rise without those of some sites; none where they do not over the whole run.
    pub(super) fn of_all(&self, left_out: &[u32]) -> Option<Rise> {
        let without = self.floors(left_out);
        let less = |clock, without: [u64; PARTS]| {
            let mut floors = self.series.floors_of_all(clock);
            floors.iter_mut().zip(without).for_each(|(floor, less)| *floor = floor.saturating_sub(less));
            floors
        };
        let floors = Floors {
            by_bytes: less(Clock::Bytes, without.by_bytes),
            in_time: less(Clock::Time, without.in_time),
        };
        self.run.rise(&floors, self.run.may_grow(&floors)?)
    }

    fn floors(&self, sites: &[u32]) -> Floors {
        let of = |clock| {
            let mut floors = [0; PARTS];
            sites.iter().for_each(|site| self.series.add_floors(clock, *site, &mut floors));
            floors
        };
        Floors { by_bytes: of(Clock::Bytes), in_time: of(Clock::Time) }
    }

    /// The clock and the parts that rows are compared in: the troughs of all live bytes, if these rise.
    fn compared(&self, rise: Option<&Rise>) -> (Clock, Vec<usize>) {
        let beneath_waves = rise.and_then(|rise| {
            let clock = if rise.in_time { Clock::Time } else { Clock::Bytes };
            Some((clock, troughs(&rise.floors_bytes.as_slice().try_into().ok()?)?))
        });
        beneath_waves.unwrap_or_else(|| (Clock::Bytes, (0..PARTS).collect()))
    }

    /// Adds the rows whose live bytes rise over the whole run, steepest first; the largest of those that rose and stay;
    /// and those that have most more in the last third of the run than in the first.
    pub(super) fn of_rows(&self, rows: &[Row], call_sites: &CallSites<'_>, figures: &mut LeakFigures) {
        let (mut candidates, mut filled, mut most) = (Vec::new(), None, Vec::new());
        let (clock, parts) = self.compared(figures.rise_of_all.as_ref());
        let third = parts.len() / 3;
        for (number, row) in rows.iter().enumerate() {
            let floors = self.floors(&row.sites);
            let of_clock = match clock {
                Clock::Bytes => &floors.by_bytes,
                Clock::Time => &floors.in_time,
            };
            let mean = |parts: &[usize]| parts.iter().map(|part| of_clock[*part]).sum::<u64>() / third as u64;
            let (first, last) = (mean(&parts[..third]), mean(&parts[parts.len() - third..]));
            if last > first {
                most.push((number, first, last));
            }
            if let Some(clock) = self.run.may_grow(&floors) {
                candidates.push((number, clock, floors));
            } else if let Some(share) = self.run.filled_at(&floors) {
                let bytes = floors.by_bytes[PARTS - 1];
                filled = filled.filter(|(_, most, _)| *most >= bytes).or(Some((number, bytes, share)));
            }
        }
        candidates.sort_by_key(|(number, _, floors)| {
            (Reverse(floors.by_bytes[PARTS - 1].saturating_sub(floors.by_bytes[0])), *number)
        });
        candidates.truncate(SLOPES);
        let grown = candidates.into_iter().filter_map(|(number, clock, floors)| {
            let rise = self.run.rise(&floors, clock)?;
            Some(self.growing(&rows[number], call_sites.name(number), rise, call_sites))
        });
        figures.growing = grown.collect();
        figures.growing.sort_by(|one, other| other.rise.per_mib.value.total_cmp(&one.rise.per_mib.value));
        figures.filled = filled.map(|(number, bytes, until_share)| Filled {
            name: call_sites.name(number),
            bytes,
            until_share,
        });
        most.sort_by_key(|(_, first, last)| Reverse(last - first));
        let most = most.into_iter().take(MOST).map(|(row, first_third_bytes, last_third_bytes)| GrownMost {
            name: call_sites.name(row),
            first_third_bytes,
            last_third_bytes,
        });
        figures.grown_most = most.collect();
    }

    fn growing(&self, row: &Row, name: String, rise: Rise, call_sites: &CallSites<'_>) -> Growing {
        let site = row.largest.map(|(site, _)| site).or_else(|| row.sites.first().copied());
        let had = row.sites.iter().map(|site| self.series.before_last_frees(*site));
        Growing {
            name,
            stack: site.map_or_else(Vec::new, |site| call_sites.whole(site)),
            at_end: had.fold(Sum::default(), Sum::plus),
            rise,
        }
    }
}
