//! The groups of lines in which the ledger shows where memory is.

use heaptoll_ledger::{Amount, Snapshot, Term};

/// A summand of the resident set, and the lines that it has.
pub struct Group {
    /// Its name in tables and charts.
    pub name: &'static str,
    /// The terms that it sums up.
    pub terms: &'static [Term],
    /// Shown also when it is zero.
    pub always: bool,
}

/// Of the heap, without a live block on their pages.
pub const EMPTY: [Term; 5] = [Term::Caches, Term::Quarantine, Term::Unused, Term::Blacklisted, Term::Fresh];
/// Freed, and not reclaimed.
pub const DEAD: [Term; 3] = [Term::Headroom, Term::Held, Term::Dead];

/// The groups of the sum, in order; in the chart from the bottom.
pub const GROUPS: [Group; 9] = [
    Group { name: "live, as requested", terms: &[Term::Live], always: true },
    Group { name: "internal fragmentation", terms: &[Term::Internal], always: true },
    Group { name: "external fragmentation", terms: &[Term::External], always: true },
    Group { name: "caches and quarantine", terms: &EMPTY, always: true },
    Group { name: "metadata", terms: &[Term::Metadata], always: true },
    Group { name: "dead but not reclaimed", terms: &DEAD, always: false },
    Group { name: "live, not in the record", terms: &[Term::Unrecorded], always: false },
    Group { name: "inherited from the parent", terms: &[Term::Inherited], always: false },
    Group {
        name: "not heap",
        terms: &[
            Term::Code,
            Term::StaticData,
            Term::Stacks,
            Term::Shared,
            Term::Recorder,
            Term::Kernel,
            Term::OtherAnonymous,
        ],
        always: true,
    },
];

/// A line's name below its group's.
pub fn line_name(term: Term) -> &'static str {
    match term {
        Term::Live => "requested",
        Term::Internal => "in the block and not requested",
        Term::External => "free, on pages with live blocks",
        Term::Caches => "pages without a live block",
        Term::Fresh => "pages of the heap without a known block",
        Term::Inherited => "pages of the heap without a known block of its own",
        Term::Quarantine => "quarantine",
        Term::Unused => "never carved: the step of growth",
        Term::Blacklisted => "never carved: black-listed",
        Term::Metadata => "metadata",
        Term::Dead => "not split",
        Term::Headroom => "headroom: a collection reclaims it",
        Term::Held => "kept by words that point there",
        Term::Unrecorded => "not in the record",
        Term::Code => "code, constants and files",
        Term::StaticData => "static data",
        Term::Stacks => "stacks",
        Term::Shared => "shared memory and files",
        Term::Recorder => "the recorder's own rings",
        Term::Kernel => "the kernel's pages",
        Term::OtherAnonymous => "other anonymous memory",
    }
}

impl Group {
    /// What its lines sum up to.
    pub fn amount(&self, snapshot: &Snapshot) -> Amount {
        self.terms.iter().fold(Amount::default(), |sum, &term| sum + snapshot.amount(term))
    }
}

/// The line with most of the group with most of a snapshot's resident set.
pub fn largest(snapshot: &Snapshot) -> Option<Term> {
    let group = GROUPS.iter().max_by_key(|group| group.amount(snapshot).resident)?;
    group.terms.iter().copied().max_by_key(|&term| snapshot.amount(term).resident)
}

/// Groups that are not zero in every snapshot, and those always shown.
pub fn shown(snapshots: &[Snapshot]) -> impl Iterator<Item = &'static Group> {
    GROUPS
        .iter()
        .filter(|group| group.always || snapshots.iter().any(|snapshot| group.amount(snapshot).total() > 0))
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{How, LedgerLine};

    use super::*;

    #[test]
    fn every_term_is_in_one_group() {
        for term in heaptoll_ledger::TERMS {
            assert_eq!(GROUPS.iter().filter(|group| group.terms.contains(&term)).count(), 1, "{term:?}");
        }
    }

    /// The callers of `mmap` led, with 14 %, where code was 60 %.
    #[test]
    fn the_largest_line_is_of_the_largest_group() {
        let line = |(term, resident)| LedgerLine {
            term,
            amount: Amount { resident, ..Amount::default() },
            how: How::Counted,
        };
        let lines = [(Term::Live, 40), (Term::Code, 30), (Term::OtherAnonymous, 20)].map(line);
        let snapshot = Snapshot { lines: lines.into(), ..Snapshot::default() };
        assert_eq!(largest(&snapshot), Some(Term::Code));
    }
}
