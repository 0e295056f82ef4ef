//! Black lists: chunks that a number in the program would point into if it were a pointer (Boehm, *Space efficient
//! conservative garbage collection*, 1993). An object there would never be found dead, so none is put there.

use crate::boehm::header::CHUNK;

/// Chunks are distinguished modulo this many.
const ENTRIES: usize = 1 << 14;

type List = [u64; ENTRIES / 64];

/// The chunks that false pointers pointed into in the last collection, the one before, and the one under way. A chunk
/// is avoided that was in two finished ones.
#[derive(Debug)]
pub struct BlackLists {
    lists: [List; 3],
    /// Which of the lists is the one that is being made; the one before it is the last finished.
    making: usize,
}

const fn index(address: usize) -> usize {
    address / CHUNK % ENTRIES
}

const fn has(list: &List, index: usize) -> bool {
    (list[index / 64] >> (index % 64)) & 1 != 0
}

impl BlackLists {
    /// None are listed.
    pub const fn new() -> BlackLists {
        BlackLists { lists: [[0; ENTRIES / 64]; 3], making: 0 }
    }

    const fn newer(&self) -> &List {
        &self.lists[(self.making + 2) % 3]
    }

    const fn older(&self) -> &List {
        &self.lists[(self.making + 1) % 3]
    }

    /// Records a false pointer to `address`, where there is no object. `new` if there is no chunk at all: in one that
    /// is there it counts only if it was seen in the last collection too, since it may have been an object then.
    pub const fn add(&mut self, address: usize, new: bool) {
        let at = index(address);
        if new || has(self.newer(), at) {
            self.lists[self.making][at / 64] |= 1 << (at % 64);
        }
    }

    /// A collection is finished.
    pub const fn promote(&mut self) {
        self.making = (self.making + 1) % 3;
        self.lists[self.making] = [0; ENTRIES / 64];
    }

    /// A collection was aborted.
    pub const fn forget(&mut self) {
        self.lists[self.making] = [0; ENTRIES / 64];
    }

    /// The first chunk from `chunk` on, within `bytes`, that is to be avoided.
    pub const fn listed(&self, chunk: usize, bytes: usize) -> Option<usize> {
        let mut at = chunk;
        while at < chunk + bytes {
            let index = index(at);
            if has(self.newer(), index) && has(self.older(), index) {
                return Some(at);
            }
            at += CHUNK;
        }
        None
    }
}

impl Default for BlackLists {
    fn default() -> BlackLists {
        BlackLists::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_avoided_after_two_collections_that_saw_it_and_for_one_after() {
        let mut lists = BlackLists::new();
        let chunk = 77 * CHUNK;
        for (round, (seen, avoided)) in
            [(true, false), (true, true), (false, false), (true, false), (true, true)].into_iter().enumerate()
        {
            if seen {
                lists.add(chunk + 123, true);
            }
            lists.promote();
            assert_eq!(lists.listed(chunk - 3 * CHUNK, 5 * CHUNK).is_some(), avoided, "round {round}");
        }
        assert_eq!(lists.listed(chunk - 3 * CHUNK, 5 * CHUNK), Some(chunk));
        assert_eq!(lists.listed(chunk - 3 * CHUNK, 3 * CHUNK), None);
    }

    #[test]
    fn in_a_chunk_that_is_there_it_counts_only_a_second_time() {
        let mut lists = BlackLists::new();
        lists.add(CHUNK, false);
        lists.promote();
        lists.add(CHUNK, true);
        lists.promote();
        assert_eq!(lists.listed(CHUNK, CHUNK), None);
        lists.add(CHUNK, false);
        lists.promote();
        assert_eq!(lists.listed(CHUNK, CHUNK), Some(CHUNK));
    }
}
