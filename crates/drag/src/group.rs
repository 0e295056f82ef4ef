//! Sums over objects: all, those of a size class, those of a call site.

use heaptoll_callsites::Sum;

use crate::lifetime::Ended;
use crate::space::Spaces;

/// How an object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// The program freed it.
    Freed,
    /// The collector reclaimed it; the program did not free it.
    Reclaimed,
    /// Its address was allocated again, and its end was not seen.
    Lost,
    /// It existed when the process ended.
    Kept,
}

/// A set of objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    /// All of them.
    pub all: Sum,
    /// Those never touched.
    pub void: Sum,
    /// Those that existed at the end.
    pub kept: Sum,
    /// Those reclaimed without having been freed.
    pub reclaimed: Sum,
    /// Those that ended at an unknown time.
    pub lost: Sum,
    /// Space-time of all.
    pub spaces: Spaces,
    /// Space-time of those that existed at the end.
    pub kept_spaces: Spaces,
}

impl Group {
    /// Adds an object that has ended.
    #[inline(always)]
    pub fn add(&mut self, bytes: u64, ended: &Ended, cause: EndCause) {
        self.all.add(bytes);
        if !ended.touched {
            self.void.add(bytes);
        }
        self.spaces = self.spaces.plus(&ended.spaces);
        match cause {
            EndCause::Freed => {}
            EndCause::Reclaimed => self.reclaimed.add(bytes),
            EndCause::Lost => self.lost.add(bytes),
            EndCause::Kept => {
                self.kept.add(bytes);
                self.kept_spaces = self.kept_spaces.plus(&ended.spaces);
            }
        }
    }

    /// The sum.
    pub fn plus(self, other: &Group) -> Group {
        Group {
            all: self.all.plus(other.all),
            void: self.void.plus(other.void),
            kept: self.kept.plus(other.kept),
            reclaimed: self.reclaimed.plus(other.reclaimed),
            lost: self.lost.plus(other.lost),
            spaces: self.spaces.plus(&other.spaces),
            kept_spaces: self.kept_spaces.plus(&other.kept_spaces),
        }
    }

    /// Without the time that freed blocks waited to be reclaimed, for a collector that reclaims at the free.
    pub fn without_waiting(mut self) -> Group {
        for spaces in [&mut self.spaces, &mut self.kept_spaces] {
            spaces.0.iter_mut().for_each(|space| space.unreclaimed = 0);
        }
        self
    }
}

/// Most call sites that are distinguished; later ones are summed.
const SITES: usize = 1 << 20;

/// Objects by size class and by call site.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    /// Class 0 has no bytes, class n sizes from 2^(n-2)+1 to 2^(n-1).
    pub classes: Vec<Group>,
    /// By site; the first is for objects without one.
    pub sites: Vec<Group>,
    /// Sites beyond the limit.
    pub others: Group,
}

impl Groups {
    /// Adds an object that has ended.
    pub fn add(&mut self, bytes: u64, site: u32, ended: &Ended, cause: EndCause) {
        at(&mut self.classes, class(bytes)).add(bytes, ended, cause);
        self.site(site).add(bytes, ended, cause);
    }

    /// Adds a freed block that was reclaimed.
    pub fn add_waiting(&mut self, bytes: u64, site: u32, waited: &Spaces) {
        let class = at(&mut self.classes, class(bytes));
        class.spaces = class.spaces.plus(waited);
        let site = self.site(site);
        site.spaces = site.spaces.plus(waited);
    }

    fn site(&mut self, site: u32) -> &mut Group {
        match site as usize {
            site if site < SITES => at(&mut self.sites, site),
            _ => &mut self.others,
        }
    }

    /// All objects.
    pub fn all(&self) -> Group {
        self.classes.iter().fold(Group::default(), |sum, group| sum.plus(group))
    }
}

fn at(groups: &mut Vec<Group>, index: usize) -> &mut Group {
    if index >= groups.len() {
        groups.resize(index + 1, Group::default());
    }
    &mut groups[index]
}

/// The size class: the power of two to which a size is rounded up.
pub fn class(bytes: u64) -> usize {
    match bytes {
        0 => 0,
        bytes => (u64::BITS - (bytes - 1).leading_zeros()) as usize + 1,
    }
}

/// Smallest and largest size of a class.
pub fn borders(class: usize) -> (u64, u64) {
    match class {
        0 => (0, 0),
        1 => (1, 1),
        class => ((1 << (class - 2)) + 1, 1_u64.checked_shl(class as u32 - 1).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        for (bytes, expected) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (5, 4), (64, 7), (65, 8)] {
            assert_eq!(class(bytes), expected, "{bytes}");
            let (from, to) = borders(expected);
            assert!((from..=to).contains(&bytes), "{bytes} in {from}..={to}");
        }
        assert_eq!(borders(class(u64::MAX)).1, u64::MAX);
    }
}
