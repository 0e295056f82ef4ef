//! One machine's caches: which level serves each reference.
//!
//! Each level replaces the least recently used line of a set. A level receives only what the one above missed, and what
//! it misses is loaded into it and into all above (fills are neither inclusive nor exclusive: a line that one level
//! evicts stays in the others). Stores load lines as loads do; lines written back are not counted. Addresses are those
//! of the process, which the first level of any machine uses; sets of the others depend on physical addresses on a real
//! machine.

use heaptoll_reftrace::Reference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::{Level, Machine};
use crate::split::{Accessor, Split};

/// Loads and stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

impl Counts {
    /// The sum.
    pub fn total(self) -> u64 {
        self.loads + self.stores
    }
}

/// A cache of sets; the lines of a set are in the order of their last use. An entry is its line + 1, 0 is empty.
#[derive(Debug, Clone)]
struct Cache {
    entries: Vec<u64>,
    ways: usize,
    sets: u64,
    /// Sets - 1 if the number of sets is a power of two.
    mask: Option<u64>,
    line_shift: u32,
}

impl Cache {
    fn new(level: &Level) -> Cache {
        let (sets, ways) = (level.sets(), level.ways as usize);
        Cache {
            // The system zeroes pages as they are touched, so memory is in proportion to the lines in use.
            entries: vec![0; sets as usize * ways],
            ways,
            sets,
            mask: sets.is_power_of_two().then(|| sets - 1),
            line_shift: level.line.trailing_zeros(),
        }
    }

    /// Whether the cache had the line of this address. It has afterwards.
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
    /// By accessor and kind (load, store): references that each level served, memory last.
    served: Vec<[[u64; 2]; Accessor::COUNT]>,
    shift: u32,
    /// The line last touched, which is the most recently used of its set.
    last: u64,
}

impl Hierarchy {
    /// A machine's caches, empty.
    pub fn new(machine: &Machine) -> Hierarchy {
        let levels: Vec<Cache> = machine.levels.iter().map(Cache::new).collect();
        Hierarchy {
            served: vec![Default::default(); levels.len() + 1],
            shift: levels.first().map_or(0, |cache| cache.line_shift),
            levels,
            last: u64::MAX,
        }
    }

    /// Empties all caches; what was counted stays.
    pub fn empty(&mut self) {
        self.levels.iter_mut().for_each(|cache| cache.entries.fill(0));
        self.last = u64::MAX;
    }

    /// Processes references of one accessor. One that lies across lines misses once if any of them is missing.
    pub fn references(&mut self, accessor: impl Into<Accessor>, references: &[Reference]) {
        let accessor = accessor.into() as usize;
        for reference in references {
            let address = reference.address();
            let first = address >> self.shift;
            let last = (address + reference.size().max(1) - 1) >> self.shift;
            let mut server = if first == self.last { 0 } else { self.line(first) };
            for line in first + 1..=last {
                server = server.max(self.line(line));
            }
            self.served[server][accessor][usize::from(reference.is_store())] += 1;
        }
    }

    /// Processes references of one accessor of which `sifted` are all that can miss or change the order of a set of the
    /// first level; see [`Hierarchy::can_be_sifted`].
    pub fn sifted(&mut self, accessor: impl Into<Accessor>, references: &[Reference], sifted: &[Reference]) {
        let accessor = accessor.into();
        let stores = |all: &[Reference]| all.iter().map(|one| u64::from(one.is_store())).sum::<u64>();
        let (of_all, of_sifted) = (stores(references), stores(sifted));
        let hits = &mut self.served[0][accessor as usize];
        hits[1] += of_all - of_sifted;
        hits[0] += (references.len() - sifted.len()) as u64 + of_sifted - of_all;
        self.references(accessor, sifted);
    }

    /// Whether references to the most recent lines of this many sets, of such lines, are also to the most recent lines
    /// of the sets of the first level.
    pub fn can_be_sifted(&self, line_bytes: u64, sets: u64) -> bool {
        self.levels.first().is_some_and(|level| {
            level.sets.is_multiple_of(sets) && line_bytes.trailing_zeros() == level.line_shift
        })
    }

    /// Processes an access of a system call to a range of memory: a reference a line.
    pub fn system(&mut self, address: u64, length: u64, store: bool) {
        let Some(end) = length.checked_sub(1).map(|beyond| address.saturating_add(beyond)) else { return };
        for line in address >> self.shift..=end >> self.shift {
            let server = self.line(line);
            self.served[server][Accessor::System as usize][usize::from(store)] += 1;
        }
    }

    /// The level that has the line; this level and all above have it afterwards.
    #[inline]
    fn line(&mut self, line: u64) -> usize {
        self.last = line;
        let misses = self.levels.iter_mut().position(|level| level.touch(line << self.shift));
        misses.unwrap_or(self.levels.len())
    }

    /// References made.
    pub fn references_made(&self) -> Split<Counts> {
        self.beyond(0)
    }

    /// Misses of each level, nearest first.
    pub fn misses(&self) -> Vec<Split<Counts>> {
        (1..self.served.len()).map(|level| self.beyond(level)).collect()
    }

    /// References that a level or one further from the processor served.
    fn beyond(&self, level: usize) -> Split<Counts> {
        Split::of(|accessor| {
            let of = |store: usize| {
                self.served[level..].iter().map(|accessors| accessors[accessor as usize][store]).sum()
            };
            Counts { loads: of(0), stores: of(1) }
        })
    }
}

/// Loads and stores summed.
pub fn all(counts: &Split<Counts>) -> Split<u64> {
    Split::of(|accessor| counts.get(accessor).total())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use heaptoll_reftrace::Owner;
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
        assert_eq!(hierarchy.misses().iter().map(|level| all(level).program).collect::<Vec<_>>(), [512, 512]);
        // A sweep over 64 KiB in 32 KiB: the least recently used line is always the next one needed.
        let mut hierarchy = Hierarchy::new(&machine);
        sweep(&mut hierarchy, 64 << 10, 4);
        let loads = |loads| Counts { loads, stores: 0 };
        assert_eq!(hierarchy.misses()[0].program, loads(4 * 1024));
        assert_eq!(hierarchy.misses()[1].program, loads(1024));
        assert_eq!(hierarchy.references_made().program, loads(4 * 8192));
    }

    #[test]
    fn caches_that_were_emptied_miss_everything_once_more_and_keep_their_counts() {
        let mut hierarchy = Hierarchy::new(&"1K/2,4K/4".parse().expect("a machine"));
        let line = Reference::new(0x1000, 8, false);
        hierarchy.references(Owner::Program, &[line, line]);
        hierarchy.empty();
        hierarchy.references(Owner::Program, &[line, line]);
        assert_eq!(hierarchy.misses().iter().map(|level| all(level).program).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(hierarchy.references_made().program.loads, 4);
    }

    #[test]
    fn accessors_loads_and_stores_are_distinguished() {
        let mut hierarchy = Hierarchy::new(&Machine::usual());
        hierarchy.references(Owner::Program, &[Reference::new(0x1000, 8, true)]);
        hierarchy.references(Owner::Allocator, &[Reference::new(0x1008, 8, false)]);
        hierarchy.references(Owner::Collector, &[Reference::new(0x203c, 8, false)]);
        hierarchy.system(0x2000, 130, true);
        hierarchy.system(0x9000, 0, true);
        let counts = |loads, stores| Counts { loads, stores };
        // 0x203c to 0x2043 are two lines and one reference; both are cached when the kernel writes three.
        let misses = Split {
            program: counts(0, 1),
            allocator: counts(0, 0),
            collector: counts(1, 0),
            system: counts(0, 1),
            sweeper: counts(0, 0),
        };
        assert_eq!(hierarchy.misses(), [misses, misses, misses]);
        let made = Split {
            program: counts(0, 1),
            allocator: counts(1, 0),
            collector: counts(1, 0),
            system: counts(0, 3),
            sweeper: counts(0, 0),
        };
        assert_eq!(hierarchy.references_made(), made);
    }

    /// Levels as lists of lines, most recent first. Each reference is its first and its last line.
    fn plain(machine: &Machine, references: &[(u64, u64)]) -> Vec<u64> {
        let mut caches: Vec<Vec<VecDeque<u64>>> =
            machine.levels.iter().map(|level| vec![VecDeque::new(); level.sets() as usize]).collect();
        let mut misses = vec![0; machine.levels.len()];
        for (first, last) in references {
            let mut missed = vec![false; machine.levels.len()];
            for line in *first..=*last {
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
                    missed[at] = true;
                }
            }
            misses.iter_mut().zip(missed).for_each(|(misses, missed)| *misses += u64::from(missed));
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
                lines.iter().map(|line| Reference::new(line * 64 + line % 64, 8, line % 3 == 0)).collect();
            let touched: Vec<(u64, u64)> =
                lines.iter().map(|line| (*line, line + u64::from(line % 64 > 56))).collect();
            hierarchy.references(Owner::Program, &references);
            let found: Vec<u64> = hierarchy.misses().iter().map(|level| all(level).program).collect();
            prop_assert_eq!(found, plain(&machine, &touched));
        }
    }
}
