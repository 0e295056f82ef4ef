//! A machine's caches over a replay: what the program's loads and stores miss where its objects are, request by request.
//!
//! Two simulations see the same accesses. They differ in what a collection leaves in the caches. A real one is between
//! the two: in `touched` it loads the headers of what it finds alive and the words that may hold references, and of what
//! moved all of the old place, and stores all of the new; in the order of the new addresses, for the real order is the
//! collector's own. In `emptied` nothing is left. Tables of the collector, the zeroing of fresh memory and the reuse of
//! free cells are in neither.

mod caches;
mod requests;

use heaptoll_locality::machine::Machine;
use heaptoll_moving_answers::Simulated;
use heaptoll_reftrace::Owner;

use crate::header::{Header, WORD};
use crate::program::Access;
use crate::table::Table;
use caches::Simulator;
use requests::Requests;

/// What to simulate.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The caches.
    pub machine: Machine,
    /// Bytes that are allocated between collections on request; none: only a full heap is collected.
    pub collect_every_bytes: Option<u64>,
}

/// What a replay reports as it goes on.
pub trait Watch {
    /// An object was allocated at an address.
    fn allocated(&mut self, handle: u32, address: usize, header: &Header);
    /// A load or store of the program at an address.
    fn access(&mut self, address: usize, access: &Access);
    /// Collections have ended since the last report.
    fn collected(&mut self, table: &Table, whole_heap: bool);
    /// A request of a thread begins.
    fn request_begins(&mut self, thread: u32);
    /// It ends.
    fn request_ends(&mut self, thread: u32);
    /// Whether a collection shall be made before an object of so many bytes.
    fn wants_collection(&mut self, bytes: usize) -> bool;
}

/// Watches nothing.
#[derive(Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    #[inline(always)]
    fn allocated(&mut self, _handle: u32, _address: usize, _header: &Header) {}
    #[inline(always)]
    fn access(&mut self, _address: usize, _access: &Access) {}
    #[inline(always)]
    fn collected(&mut self, _table: &Table, _whole_heap: bool) {}
    #[inline(always)]
    fn request_begins(&mut self, _thread: u32) {}
    #[inline(always)]
    fn request_ends(&mut self, _thread: u32) {}
    #[inline(always)]
    fn wants_collection(&mut self, _bytes: usize) -> bool {
        false
    }
}

/// What is known of the object of a handle.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    address: usize,
    scanned: u32,
    /// Collections before its allocation.
    born: u32,
}

/// An object that a collection found alive.
struct Survivor {
    address: usize,
    before: usize,
    bytes: usize,
    /// Bytes from its start that are read where it stays.
    read: usize,
}

/// Simulates a replay.
#[derive(Debug)]
pub struct Simulation {
    touched: Simulator,
    emptied: Simulator,
    requests: Requests,
    objects: Vec<Seen>,
    collect_every_bytes: Option<u64>,
    /// Bytes allocated since the last collection on request.
    allocated_bytes: u64,
}

impl Simulation {
    /// That of a program of so many handles.
    pub fn new(handles: u32, settings: &Settings) -> Simulation {
        Simulation {
            touched: Simulator::new(&settings.machine),
            emptied: Simulator::new(&settings.machine),
            requests: Requests::default(),
            objects: vec![Seen::default(); handles as usize],
            collect_every_bytes: settings.collect_every_bytes,
            allocated_bytes: 0,
        }
    }

    /// What was found.
    pub fn finish(self) -> Simulated {
        Simulated {
            touched: self.touched.finish(),
            emptied: self.emptied.finish(),
            requests: self.requests.ended,
        }
    }

    fn cycles(&self) -> [u64; 2] {
        [self.touched.cycles(), self.emptied.cycles()]
    }

    /// What a collection found alive and went through: young objects alone where it was one of the nursery.
    fn survivors(&mut self, table: &Table, whole_heap: bool) -> Vec<Survivor> {
        let collections = self.requests.collections;
        let mut survivors = Vec::new();
        for handle in table.handles() {
            let (entry, seen) = (table.entry(handle), &mut self.objects[handle as usize]);
            let before = std::mem::replace(&mut seen.address, entry.address);
            if !whole_heap && before == entry.address && seen.born < collections {
                continue;
            }
            let header = Header { words: entry.words, scanned: seen.scanned, number: 0 };
            survivors.push(Survivor {
                address: entry.address,
                before,
                bytes: header.total_bytes(),
                read: (header.own_words() as usize + seen.scanned as usize) * WORD,
            });
        }
        survivors.sort_unstable_by_key(|survivor| survivor.address);
        survivors
    }
}

impl Watch for Simulation {
    fn allocated(&mut self, handle: u32, address: usize, header: &Header) {
        self.objects[handle as usize] =
            Seen { address, scanned: header.scanned, born: self.requests.collections };
        let bytes = header.own_words() as usize * WORD;
        self.touched.range(Owner::Allocator, address, bytes, true);
        self.emptied.range(Owner::Allocator, address, bytes, true);
    }

    fn access(&mut self, address: usize, access: &Access) {
        self.touched.access(address, access);
        self.emptied.access(address, access);
        self.requests.accesses += 1;
    }

    fn collected(&mut self, table: &Table, whole_heap: bool) {
        for survivor in self.survivors(table, whole_heap) {
            let Survivor { address, before, bytes, read } = survivor;
            if before == address {
                self.touched.range(Owner::Collector, address, read, false);
            } else {
                self.touched.range(Owner::Collector, before, bytes, false);
                self.touched.range(Owner::Collector, address, bytes, true);
            }
        }
        self.emptied.empty();
        self.requests.collected();
    }

    fn request_begins(&mut self, thread: u32) {
        let cycles = self.cycles();
        self.requests.begin(thread, cycles);
    }

    fn request_ends(&mut self, thread: u32) {
        let cycles = self.cycles();
        self.requests.end(thread, cycles);
    }

    fn wants_collection(&mut self, bytes: usize) -> bool {
        let Some(every) = self.collect_every_bytes else { return false };
        self.allocated_bytes += bytes as u64;
        let wants = self.allocated_bytes > every;
        if wants {
            self.allocated_bytes = bytes as u64;
        }
        wants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: usize = 64;

    /// A machine of one cache of eight lines.
    fn simulation(handles: u32) -> Simulation {
        let machine = "512/8".parse::<Machine>().unwrap();
        Simulation::new(handles, &Settings { machine, collect_every_bytes: Some(100) })
    }

    fn load(simulation: &mut Simulation, address: usize) {
        simulation.access(address, &Access { handle: 0, offset: 0, bytes: 8, store: false });
    }

    fn add(simulation: &mut Simulation, table: &mut Table, handle: u32, address: usize) {
        let header = Header { words: 7, scanned: 1, number: 0 };
        simulation.allocated(handle, address, &header);
        table.add(handle, address, header.words);
    }

    #[test]
    fn objects_that_a_collection_moved_are_cached_at_their_new_place_or_nothing_is() {
        let (mut simulation, mut table) = (simulation(2), Table::new(2));
        add(&mut simulation, &mut table, 0, 16 * LINE);
        add(&mut simulation, &mut table, 1, 17 * LINE);
        table.point();
        table.move_or_forget(|address| if address == 16 * LINE { 32 * LINE } else { address });
        simulation.request_begins(0);
        simulation.collected(&table, true);
        simulation.request_ends(0);
        simulation.request_begins(0);
        load(&mut simulation, 32 * LINE + 8);
        load(&mut simulation, 17 * LINE + 8);
        load(&mut simulation, 17 * LINE + 16);
        simulation.request_ends(0);
        let found = simulation.finish();
        let misses = |caches: &heaptoll_moving_answers::Caches| {
            let misses = caches.misses[0];
            (misses.program, misses.allocator, misses.collector)
        };
        // The header's line was allocated; the copy is the one that the collector had not.
        assert_eq!(misses(&found.touched), (0, 2, 1));
        assert_eq!(misses(&found.emptied), (2, 2, 0));
        let [first, second] = &found.requests[..] else { panic!("{found:?}") };
        assert!(first.interrupted && !second.interrupted);
        assert_eq!((second.after, second.since, second.accesses), (1, 0, 3));
        assert_eq!(second.cycles, [3, 3 + 2 * 200]);
    }

    #[test]
    fn a_collection_of_the_nursery_goes_through_what_is_young_or_moved() {
        let (mut simulation, mut table) = (simulation(3), Table::new(3));
        add(&mut simulation, &mut table, 0, 16 * LINE);
        simulation.collected(&table, false);
        assert_eq!(simulation.survivors(&table, false).len(), 0);
        add(&mut simulation, &mut table, 1, 17 * LINE);
        assert_eq!(simulation.survivors(&table, false).len(), 1);
        assert_eq!(simulation.survivors(&table, true).len(), 2);
        table.point();
        table.move_or_forget(|address| address + 64 * LINE);
        let moved: Vec<usize> = simulation.survivors(&table, false).iter().map(|one| one.before).collect();
        assert_eq!(moved, [16 * LINE, 17 * LINE]);
    }

    #[test]
    fn a_collection_is_wanted_whenever_so_much_was_allocated() {
        let mut simulation = simulation(0);
        let wants: Vec<bool> =
            [60, 40, 1, 98, 1, 1, 200, 1].map(|bytes| simulation.wants_collection(bytes)).into();
        assert_eq!(wants, [false, false, true, false, false, true, true, true]);
    }
}
