//! One machine's caches: which level serves each reference.
//!
//! Each level replaces the least recently used line of a set. A level hears only what the one above missed, and what it
//! misses is brought into it and into all above (fills are neither inclusive nor exclusive: a line that a level drops
//! stays where else it is). Stores bring lines in as loads do; lines written back are not counted. Addresses are those
//! of the process, as the first level of any machine sees them; sets of the others depend on physical addresses on a
//! real machine.

use heaptoll_reference::{Owner, Reference};

use crate::machine::{Level, Machine};

/// Of each owner, loads and stores.
pub type Counts = [[u64; 2]; Owner::ALL.len()];

/// A cache of sets; the lines of a set stand in the order of their last use. An entry is its line + 1, 0 is empty.
#[derive(Debug, Clone)]
struct Cache {
    entries: Vec<u64>,
    ways: usize,
    sets: u64,
    /// Sets - 1 where sets are a power of two.
    mask: Option<u64>,
    line_shift: u32,
}

impl Cache {
    fn new(level: &Level) -> Cache {
        let (sets, ways) = (level.sets(), level.ways as usize);
        Cache {
            // Zeroes come from the system as they are touched, so memory is in proportion to the lines in use.
            entries: vec![0; sets as usize * ways],
            ways,
            sets,
            mask: sets.is_power_of_two().then(|| sets - 1),
            line_shift: level.line.trailing_zeros(),
        }
    }

    /// Whether the line of this address was there. It is afterwards.
    #[inline]
    fn touch(&mut self, address: u64) -> bool {
        let line = address >> self.line_shift;
        let set = match self.mask {
            Some(mask) => line & mask,
            None => line % self.sets,
        } as usize;
        let entries = &mut self.entries[set * self.ways..(set + 1) * self.ways];
        let wanted = line + 1;
        if entries[0] == wanted {
            return true;
        }
        let found = entries.iter().position(|&entry| entry == wanted);
        entries.copy_within(..found.unwrap_or(self.ways - 1), 1);
        entries[0] = wanted;
        found.is_some()
    }
}

/// The caches of a machine, empty at first.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    levels: Vec<Cache>,
    misses: Vec<Counts>,
    touches: Counts,
    shift: u32,
    /// The line last touched, which is the most recently used of its set.
    last: u64,
}

impl Hierarchy {
    /// All caches empty.
    pub fn new(machine: &Machine) -> Hierarchy {
        let levels: Vec<Cache> = machine.levels.iter().map(Cache::new).collect();
        Hierarchy {
            misses: vec![Counts::default(); levels.len()],
            touches: Counts::default(),
            shift: levels.first().map_or(0, |cache| cache.line_shift),
            levels,
            last: u64::MAX,
        }
    }

    /// Hears references of one owner. One that lies across lines touches each.
    pub fn references(&mut self, owner: Owner, references: &[Reference]) {
        let owner = owner as usize;
        for reference in references {
            let address = reference.address();
            let first = address >> self.shift;
            let last = (address + reference.size().max(1) - 1) >> self.shift;
            let store = usize::from(reference.is_store());
            self.touches[owner][store] += 1;
            if first != self.last {
                self.line(owner, store, first);
            }
            for line in first + 1..=last {
                self.touches[owner][store] += 1;
                self.line(owner, store, line);
            }
        }
    }

    /// Hears that the kernel loads from or stores to a stretch of memory for this owner: every line once.
    pub fn stretch(&mut self, owner: Owner, address: u64, length: u64, store: bool) {
        let Some(end) = length.checked_sub(1).map(|beyond| address.saturating_add(beyond)) else { return };
        for line in address >> self.shift..=end >> self.shift {
            self.touches[owner as usize][usize::from(store)] += 1;
            self.line(owner as usize, usize::from(store), line);
        }
    }

    #[inline]
    fn line(&mut self, owner: usize, store: usize, line: u64) {
        self.last = line;
        for (level, misses) in self.levels.iter_mut().zip(&mut self.misses) {
            if level.touch(line << self.shift) {
                return;
            }
            misses[owner][store] += 1;
        }
    }

    /// Lines touched.
    pub fn touches(&self) -> &Counts {
        &self.touches
    }

    /// Of them, the misses of each level, nearest first.
    pub fn misses(&self) -> &[Counts] {
        &self.misses
    }
}

/// Loads and stores together, of each owner.
pub fn by_owner(counts: &Counts) -> [u64; Owner::ALL.len()] {
    counts.map(|[loads, stores]| loads + stores)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn sweep(hierarchy: &mut Hierarchy, bytes: u64, times: usize) {
        for _ in 0..times {
            let all: Vec<Reference> =
                (0..bytes / 8).map(|word| Reference::new(0x10_0000 + word * 8, 8, false)).collect();
            hierarchy.references(Owner::Program, &all);
        }
    }

    #[test]
    fn a_sweep_hits_where_it_fits_and_misses_every_line_where_it_does_not() {
        let machine: Machine = "32K/8,1M/16".parse().expect("a machine");
        let mut hierarchy = Hierarchy::new(&machine);
        sweep(&mut hierarchy, 32 << 10, 4);
        assert_eq!(hierarchy.misses().iter().map(|level| by_owner(level)[0]).collect::<Vec<_>>(), [512, 512]);
        // 64 KiB go round in 32 KiB: least recently used is always the next needed.
        let mut hierarchy = Hierarchy::new(&machine);
        sweep(&mut hierarchy, 64 << 10, 4);
        assert_eq!(hierarchy.misses()[0][0], [4 * 1024, 0]);
        assert_eq!(hierarchy.misses()[1][0], [1024, 0]);
        assert_eq!(hierarchy.touches()[0], [4 * 8192, 0]);
    }

    #[test]
    fn owners_loads_and_stores_are_told_apart() {
        let mut hierarchy = Hierarchy::new(&Machine::usual());
        hierarchy.references(Owner::Program, &[Reference::new(0x1000, 8, true)]);
        hierarchy.references(Owner::Allocator, &[Reference::new(0x1008, 8, false)]);
        hierarchy.references(Owner::Collector, &[Reference::new(0x203c, 8, false)]);
        hierarchy.stretch(Owner::Program, 0x2000, 100, true);
        hierarchy.stretch(Owner::Program, 0x9000, 0, true);
        // 0x203c to 0x2043 are two lines, and both are there when the kernel writes them.
        assert_eq!(hierarchy.misses()[0], [[0, 1], [0, 0], [2, 0]]);
        assert_eq!(hierarchy.touches(), &[[0, 3], [1, 0], [2, 0]]);
    }

    /// Levels as lists of (set, line), most recent first.
    fn plain(machine: &Machine, lines: &[u64]) -> Vec<u64> {
        let mut caches: Vec<Vec<VecDeque<u64>>> =
            machine.levels.iter().map(|level| vec![VecDeque::new(); level.sets() as usize]).collect();
        let mut misses = vec![0; machine.levels.len()];
        for line in lines {
            for (at, level) in machine.levels.iter().enumerate() {
                let own = line * machine.levels[0].line / level.line;
                let set = &mut caches[at][(own % level.sets()) as usize];
                if let Some(place) = set.iter().position(|other| *other == own) {
                    set.remove(place);
                    set.push_front(own);
                    break;
                }
                set.push_front(own);
                set.truncate(level.ways as usize);
                misses[at] += 1;
            }
        }
        misses
    }

    proptest! {
        #[test]
        fn it_is_what_lists_give(
            lines in prop::collection::vec(prop_oneof![0..40u64, 0..400u64], 0..3000),
            machine in prop::sample::select(vec![
                "256/1", "512/2,2K/4", "1K/16,3K/3,12K/8/128", "192/3,960/5,64K/1", "256/4,512/4/128,1K/2/256",
            ]),
        ) {
            let machine: Machine = machine.parse().expect("a machine");
            let mut hierarchy = Hierarchy::new(&machine);
            let references: Vec<Reference> =
                lines.iter().map(|line| Reference::new(line * 64 + line % 57, 8, line % 3 == 0)).collect();
            hierarchy.references(Owner::Program, &references);
            let found: Vec<u64> = hierarchy.misses().iter().map(|level| by_owner(level)[0]).collect();
            prop_assert_eq!(found, plain(&machine, &lines));
        }
    }
}
