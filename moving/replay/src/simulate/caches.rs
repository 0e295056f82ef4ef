//! The caches and TLBs of one machine.

use heaptoll_locality::hierarchy::{Counts, Hierarchy};
use heaptoll_locality::machine::{Level, Machine};
use heaptoll_locality::split::Split;
use heaptoll_moving_answers::{ByAccessor, Caches, PAGE};
use heaptoll_reftrace::{Owner, Reference};

use crate::program::Access;

/// Bytes of a reference of which a range is made.
const PIECE: usize = 64;
/// Entries and ways of the TLBs: those of the data TLB of many processors of Intel, and of the one behind it.
const TLBS: [(u64, u32); 2] = [(64, 4), (1536, 12)];

/// See the module.
#[derive(Debug)]
pub(super) struct Simulator {
    machine: Machine,
    caches: Hierarchy,
    tlbs: Hierarchy,
}

impl Simulator {
    pub fn new(machine: &Machine) -> Simulator {
        let level = |(entries, ways)| Level { bytes: entries * PAGE, ways, line: PAGE };
        // What references wait for these is not asked.
        let tlbs = Machine { levels: TLBS.map(level).into(), cycles: vec![0; TLBS.len()] };
        Simulator { caches: Hierarchy::new(machine), tlbs: Hierarchy::new(&tlbs), machine: machine.clone() }
    }

    fn reference(&mut self, owner: Owner, reference: Reference) {
        self.caches.references(owner, &[reference]);
        self.tlbs.references(owner, &[reference]);
    }

    /// A load or store of the program.
    pub fn access(&mut self, address: usize, access: &Access) {
        let reference = Reference::new(address as u64, u64::from(access.bytes), access.store);
        self.reference(Owner::Program, reference);
    }

    /// References to all of a range, one to each 64 bytes.
    pub fn range(&mut self, owner: Owner, address: usize, bytes: usize, store: bool) {
        let end = address + bytes;
        let mut at = address;
        while at < end {
            let next = (at / PIECE + 1) * PIECE;
            self.reference(owner, Reference::new(at as u64, (next.min(end) - at) as u64, store));
            at = next;
        }
    }

    /// Nothing is cached any more.
    pub fn empty(&mut self) {
        self.caches.empty();
        self.tlbs.empty();
    }

    /// Cycles of the program's accesses so far: one each, and what they wait.
    pub fn cycles(&self) -> u64 {
        let program = |counts: &Split<Counts>| counts.program.total();
        let misses: Vec<u64> = self.caches.misses().iter().map(program).collect();
        program(&self.caches.references_made()) + self.machine.stall_cycles(&misses) as u64
    }

    pub fn finish(self) -> Caches {
        let of = |counts: &Split<Counts>| ByAccessor {
            program: counts.program.total(),
            allocator: counts.allocator.total(),
            collector: counts.collector.total(),
        };
        Caches {
            references: of(&self.caches.references_made()),
            misses: self.caches.misses().iter().map(of).collect(),
            tlb_misses: self.tlbs.misses().iter().map(of).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_reference_to_each_line_and_its_pages_are_translated() {
        let mut simulator = Simulator::new(&Machine::usual());
        simulator.range(Owner::Collector, 4096 - 72, 144, false);
        simulator.access(4096 - 8, &Access { handle: 0, offset: 0, bytes: 16, store: true });
        let cycles = simulator.cycles();
        let found = simulator.finish();
        assert_eq!((found.references.collector, found.references.program), (4, 1));
        assert_eq!((found.misses[0].collector, found.misses[0].program), (4, 0));
        assert_eq!((found.tlb_misses[0].collector, found.tlb_misses[0].program), (2, 0));
        assert_eq!(cycles, 1, "both lines are cached");
    }

    #[test]
    fn a_program_that_goes_round_more_lines_than_there_are_waits_for_memory_each_time() {
        let mut simulator = Simulator::new(&"512/8".parse::<Machine>().unwrap());
        for _ in 0..3 {
            for line in 0..9 {
                simulator.access(line * 64, &Access { handle: 0, offset: 0, bytes: 1, store: false });
            }
        }
        assert_eq!(simulator.cycles(), 27 * 201);
        simulator.empty();
        simulator.access(8 * 64, &Access { handle: 0, offset: 0, bytes: 1, store: false });
        let found = simulator.finish();
        assert_eq!((found.references.program, found.misses[0].program), (28, 28));
        assert_eq!(found.tlb_misses[0].program, 2, "one page, before and after it was forgotten");
    }
}
