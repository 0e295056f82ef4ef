//! The manager's figures, laid over what was counted.
//!
//! A census has amounts and no addresses. So an amount is taken out of those counted lines in which its bytes must lie,
//! and how much of it is resident follows from them. The sum stays the same.

use crate::census::{Census, Source};
use crate::line::{Amount, How, LedgerLine, TERMS, Term};

/// Builds the lines: an amount for each term.
#[derive(Debug, Clone)]
pub struct LineBuilder {
    amounts: [Amount; TERMS.len()],
    hows: [How; TERMS.len()],
}

impl LineBuilder {
    /// All zero and counted.
    pub fn new() -> LineBuilder {
        LineBuilder { amounts: [Amount::default(); TERMS.len()], hows: [How::Counted; TERMS.len()] }
    }

    /// From finished lines.
    pub fn of(lines: &[LedgerLine]) -> LineBuilder {
        let mut all = LineBuilder::new();
        for line in lines {
            all.add(line.term, line.amount, line.how);
        }
        all
    }

    /// A term's amount.
    pub fn amount(&mut self, term: Term) -> &mut Amount {
        &mut self.amounts[term as usize]
    }

    /// Adds to a term; `how` is how the amount is known.
    pub fn add(&mut self, term: Term, amount: Amount, how: How) {
        if amount.total() > 0 {
            self.amounts[term as usize] += amount;
            let known = &mut self.hows[term as usize];
            *known = worse(*known, how);
        }
    }

    /// Lines that have a byte.
    pub fn finish(self) -> Vec<LedgerLine> {
        let lines = TERMS.iter().zip(self.amounts).zip(self.hows);
        lines
            .filter(|((_, amount), _)| amount.total() > 0)
            .map(|((&term, amount), how)| LedgerLine { term, amount, how })
            .collect()
    }

    /// Moves up to `wanted` bytes of some terms to another, each contributing in proportion to its amount.
    fn reassign(&mut self, from: &[Term], to: Term, wanted: u64) -> u64 {
        let mut all: u64 = from.iter().map(|&term| self.amounts[term as usize].total()).sum();
        let mut left = wanted.min(all);
        let moved = left;
        for &term in from {
            let pool = &mut self.amounts[term as usize];
            // The rest is divided among the remaining terms, so that rounding loses nothing.
            let share = part(left, pool.total(), all);
            all -= pool.total();
            left -= share;
            let taken = take(pool, share);
            self.credit(term, to, taken);
        }
        moved
    }

    /// Credits what was taken from one term to another. What remains of the first is known no better.
    fn credit(&mut self, from: Term, to: Term, taken: Amount) {
        if taken.total() > 0 {
            self.hows[from as usize] = worse(self.hows[from as usize], How::Reported);
            self.add(to, taken, How::Reported);
        }
    }

    /// The same with absent bytes only: of memory that was never written.
    fn reassign_absent(&mut self, from: &[Term], to: Term, wanted: u64) -> u64 {
        let mut left = wanted;
        for &term in from {
            let pool = &mut self.amounts[term as usize];
            let absent = pool.absent.min(left);
            pool.absent -= absent;
            left -= absent;
            self.credit(term, to, Amount { absent, ..Amount::default() });
        }
        wanted - left
    }

    /// Divides the dead where the census has what a collection reclaims.
    pub fn divide_dead(&mut self, census: &Census) {
        if let Some(after) = census.live_after_collection_bytes {
            self.reassign(&[Term::Dead], Term::Headroom, census.live_bytes.saturating_sub(after));
            self.reassign(&[Term::Dead], Term::Held, u64::MAX);
        }
    }

    /// Applies a census. `collector`: what is live for it and not for the record was freed by the program.
    pub fn census(&mut self, census: &Census, collector: bool) {
        if census.source == Source::Mallinfo {
            // glibc counts headers and thread caches as in use; the page counts are more exact.
            return;
        }
        let held = self.amounts[Term::Live as usize] + self.amounts[Term::Internal as usize];
        let heap: u64 = HEAP.iter().map(|&term| self.amounts[term as usize].total()).sum();

        // Memory that was never carved was never written, except on huge pages and where carved memory has become whole
        // again.
        let unused = census.unused_bytes;
        let mut moved =
            self.reassign_absent(&[Term::Fresh, Term::Inherited, Term::Caches], Term::Unused, unused);
        moved += self.reassign(&[Term::Fresh, Term::Inherited], Term::Unused, unused - moved);
        moved += self.reassign(&[Term::Caches], Term::Unused, unused - moved);
        if let Some(black) = census.blacklisted_bytes {
            self.reassign(&[Term::Unused], Term::Blacklisted, black.min(moved));
        }

        // Carved memory: on pages with live blocks or on others.
        let carved = [Term::External, Term::Caches, Term::Fresh, Term::Inherited];
        self.reassign(&carved, Term::Quarantine, census.quarantined_bytes);
        let more = census.live_bytes.saturating_sub(held.total());
        if !collector {
            self.reassign(&carved, Term::Unrecorded, more);
        } else {
            self.reassign(&carved, Term::Dead, more);
            self.divide_dead(census);
        }

        // Memory that the manager has mapped beyond the ranges of blocks holds its tables.
        let elsewhere = census.metadata_bytes.min(census.mapped_bytes.saturating_sub(heap));
        let located = self.amounts[Term::Metadata as usize].total();
        let within = (census.metadata_bytes - elsewhere).saturating_sub(located);
        self.reassign(&carved, Term::Metadata, within);
        self.reassign(&[Term::OtherAnonymous], Term::Metadata, elsewhere.saturating_sub(located));
    }
}

/// The terms that are counted in ranges of the heap.
const HEAP: [Term; 7] =
    [Term::Live, Term::Internal, Term::External, Term::Caches, Term::Fresh, Term::Inherited, Term::Metadata];

/// `amount` times `one` by `all`, rounded down; all of it where `one` is all.
fn part(amount: u64, one: u64, all: u64) -> u64 {
    if all == 0 { 0 } else { (u128::from(amount) * u128::from(one) / u128::from(all)) as u64 }
}

/// Takes bytes out of an amount, in proportion from resident, swapped and absent ones.
fn take(pool: &mut Amount, bytes: u64) -> Amount {
    let all = pool.total();
    let bytes = bytes.min(all);
    let mut taken = Amount {
        resident: part(bytes, pool.resident, all),
        swapped: part(bytes, pool.swapped, all),
        absent: part(bytes, pool.absent, all),
    };
    // Rounding leaves up to two bytes.
    while taken.total() < bytes {
        if taken.resident < pool.resident {
            taken.resident += 1;
        } else if taken.absent < pool.absent {
            taken.absent += 1;
        } else {
            taken.swapped += 1;
        }
    }
    pool.resident -= taken.resident;
    pool.swapped -= taken.swapped;
    pool.absent -= taken.absent;
    taken
}

/// The less certain of two.
fn worse(one: How, other: How) -> How {
    match (one, other) {
        (How::Estimated, _) | (_, How::Estimated) => How::Estimated,
        (How::Reported, _) | (_, How::Reported) => How::Reported,
        (How::Counted, How::Counted) => How::Counted,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(resident: u64, swapped: u64, absent: u64) -> Amount {
        Amount { resident, swapped, absent }
    }

    fn counted() -> LineBuilder {
        let mut lines = LineBuilder::new();
        lines.add(Term::Live, amount(1000, 0, 0), How::Counted);
        lines.add(Term::Internal, amount(200, 0, 0), How::Counted);
        lines.add(Term::External, amount(300, 0, 0), How::Counted);
        lines.add(Term::Caches, amount(400, 100, 2000), How::Counted);
        lines.add(Term::OtherAnonymous, amount(500, 0, 500), How::Counted);
        lines
    }

    fn of(lines: &[LedgerLine], term: Term) -> Amount {
        lines.iter().find(|line| line.term == term).map_or(Amount::default(), |line| line.amount)
    }

    #[test]
    fn a_collectors_dead_are_divided() {
        let mut lines = counted();
        // The heap's ranges are 4000 bytes.
        lines.census(
            &Census {
                mapped_bytes: 4100,
                live_bytes: 1600,
                free_bytes: 300,
                metadata_bytes: 100,
                unused_bytes: 2100,
                blacklisted_bytes: Some(21),
                live_after_collection_bytes: Some(1300),
                ..Census::default()
            },
            true,
        );
        let lines = lines.finish();
        assert_eq!(of(&lines, Term::Live), amount(1000, 0, 0));
        assert_eq!(of(&lines, Term::Headroom).total(), 300);
        assert_eq!(of(&lines, Term::Held).total(), 100);
        assert_eq!(of(&lines, Term::Unused).total() + of(&lines, Term::Blacklisted).total(), 2100);
        assert_eq!(of(&lines, Term::Blacklisted).total(), 21);
        // 2000 bytes were never written; 100 more were, of 500 resident and swapped ones.
        assert_eq!((of(&lines, Term::Unused) + of(&lines, Term::Blacklisted)).absent, 2000);
        // Its tables lie elsewhere.
        assert_eq!(of(&lines, Term::Metadata), amount(50, 0, 50));
        assert_eq!(of(&lines, Term::OtherAnonymous), amount(450, 0, 450));
        assert!(
            lines
                .iter()
                .all(|line| (line.how == How::Reported) == !matches!(line.term, Term::Live | Term::Internal))
        );
    }

    #[test]
    fn blocks_unknown_to_the_record_are_not_dead_without_a_collector() {
        let census = Census { mapped_bytes: 4000, live_bytes: 1500, ..Census::default() };
        let (mut one, mut other) = (counted(), counted());
        one.census(&census, false);
        other.census(&census, true);
        assert_eq!(of(&one.finish(), Term::Unrecorded).total(), 300);
        assert_eq!(of(&other.finish(), Term::Dead).total(), 300);
    }

    #[test]
    fn a_collection_after_the_sample_divides_the_dead() {
        let census = Census { mapped_bytes: 4000, live_bytes: 1500, ..Census::default() };
        let mut lines = counted();
        lines.census(&census, true);
        let mut snapshot =
            crate::Snapshot { lines: lines.finish(), census: Some(census), ..Default::default() };
        let before = snapshot.sum();
        snapshot.collected(&Census { live_bytes: 1260, ..Census::default() });
        assert_eq!(snapshot.amount(Term::Dead).total(), 300);
        snapshot.collected(&Census { live_after_collection_bytes: Some(1260), ..Census::default() });
        assert_eq!(snapshot.amount(Term::Headroom).total(), 240);
        assert_eq!(snapshot.amount(Term::Held).total(), 60);
        assert_eq!(snapshot.amount(Term::Dead).total(), 0);
        assert_eq!(snapshot.sum(), before);
        assert_eq!(snapshot.census.and_then(|census| census.live_after_collection_bytes), Some(1260));
    }

    #[test]
    fn glibcs_figures_move_nothing() {
        let mut lines = counted();
        let census = Census { source: Source::Mallinfo, live_bytes: 9999, ..Census::default() };
        lines.census(&census, false);
        assert_eq!(lines.finish(), counted().finish());
    }

    proptest! {
        #[test]
        fn whatever_a_census_reports_the_sum_stays(
            pools in prop::collection::vec((0..1000_u64, 0..50_u64, 0..1000_u64), 20),
            reported in prop::collection::vec(0..6000_u64, 6),
            black in prop::option::of(0..6000_u64),
            after in prop::option::of(0..6000_u64),
            collector: bool,
        ) {
            let mut lines = LineBuilder::new();
            for (&term, &(resident, swapped, absent)) in TERMS.iter().zip(&pools) {
                lines.add(term, amount(resident, swapped, absent), How::Counted);
            }
            let sum = |lines: &LineBuilder| lines.amounts.iter().fold(Amount::default(), |sum, &more| sum + more);
            let before = sum(&lines);
            lines.census(
                &Census {
                    mapped_bytes: reported[0],
                    live_bytes: reported[1],
                    free_bytes: reported[2],
                    metadata_bytes: reported[3],
                    quarantined_bytes: reported[4],
                    unused_bytes: reported[5],
                    blacklisted_bytes: black,
                    live_after_collection_bytes: after,
                    ..Census::default()
                },
                collector,
            );
            prop_assert_eq!(sum(&lines), before);
        }
    }
}
