//! Where every object is now, by handle, and which of them are roots. The collector updates addresses when objects move.

/// Set in [`Entry::epoch`] while an object's last touch lies ahead.
const HELD: u32 = 1 << 31;
/// Set there while [`Table::listed`] has the handle.
const LISTED: u32 = 1 << 30;
const EPOCH: u32 = LISTED - 1;

/// An object that the trace has not ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry {
    /// Its address; 0 once it was collected. Where the object is a root, a slot of the collector's.
    pub address: usize,
    /// The root point since which it is a root, [`HELD`] and [`LISTED`].
    epoch: u32,
    /// Its size.
    pub words: u32,
}

impl Entry {
    /// Whether its last touch lies ahead.
    #[inline(always)]
    pub fn is_held(&self) -> bool {
        self.epoch & HELD != 0
    }
}

/// All of them, and the objects that the trace has ended and no collection has found dead.
#[derive(Debug)]
pub struct Table {
    entries: Vec<Entry>,
    /// Handles of all objects in the heap, and of some that have ended: a collection passes over these alone. A program
    /// may never free anything, and most of its objects are dead.
    listed: Vec<u32>,
    /// Handles that the last collection found dead.
    pub dead: Vec<u32>,
    /// Addresses of objects that the trace has ended.
    pub ended: Vec<usize>,
    epoch: u32,
    /// Words of objects that the program has not freed.
    pub live_words: u64,
}

impl Table {
    /// One of so many handles.
    pub fn new(handles: u32) -> Table {
        Table {
            entries: vec![Entry::default(); handles as usize],
            listed: Vec::new(),
            dead: Vec::new(),
            ended: Vec::new(),
            epoch: 1,
            live_words: 0,
        }
    }

    /// A new object: a root, and held.
    #[inline(always)]
    pub fn add(&mut self, handle: u32, address: usize, words: u32) {
        let entry = &mut self.entries[handle as usize];
        if entry.epoch & LISTED == 0 {
            self.listed.push(handle);
        }
        *entry = Entry { address, epoch: self.epoch | HELD | LISTED, words };
        self.live_words += u64::from(words);
    }

    /// The object's address; 0 when it was collected.
    #[inline(always)]
    pub fn address(&self, handle: u32) -> usize {
        self.entries[handle as usize].address
    }

    /// It is a root until the next root point.
    #[inline(always)]
    pub fn root(&mut self, handle: u32) {
        let entry = &mut self.entries[handle as usize];
        entry.epoch = entry.epoch & !EPOCH | self.epoch;
    }

    /// Ends all roots.
    #[inline(always)]
    pub fn point(&mut self) {
        // A trace of 2^30 root points would take months to record; then roots of the first would be some of the last.
        self.epoch = (self.epoch + 1) & EPOCH;
    }

    /// Its last touch is over.
    #[inline(always)]
    pub fn release(&mut self, handle: u32) {
        self.entries[handle as usize].epoch &= !HELD;
    }

    /// The trace ends it.
    #[inline(always)]
    pub fn end(&mut self, handle: u32) {
        let entry = &mut self.entries[handle as usize];
        self.live_words -= u64::from(entry.words);
        if entry.address != 0 {
            self.ended.push(entry.address);
        }
        *entry = Entry { epoch: entry.epoch & LISTED, ..Entry::default() };
    }

    /// Objects in the heap that are roots, or those that are not.
    pub fn present(&mut self, roots: bool) -> impl Iterator<Item = &mut Entry> {
        let Table { entries, listed, epoch, .. } = self;
        let (entries, epoch) = (entries.as_mut_ptr(), *epoch);
        listed.iter().filter_map(move |handle| {
            // SAFETY: handles are below the number of entries, and each is listed once, so that no entry is lent twice;
            // the iterator borrows the table.
            let entry = unsafe { &mut *entries.add(*handle as usize) };
            (entry.address != 0 && (entry.epoch & EPOCH == epoch) == roots).then_some(entry)
        })
    }

    /// Gives all objects that are no roots, and those that have ended, new addresses; those that get 0 are dead.
    pub fn move_or_forget(&mut self, mut new_address: impl FnMut(usize) -> usize) {
        self.dead.clear();
        self.listed.retain(|&handle| {
            let entry = &mut self.entries[handle as usize];
            if entry.address != 0 && entry.epoch & EPOCH != self.epoch {
                entry.address = new_address(entry.address);
                if entry.address == 0 {
                    self.dead.push(handle);
                }
            }
            if entry.address == 0 {
                entry.epoch &= !LISTED;
            }
            entry.address != 0
        });
        self.ended.retain_mut(|address| {
            *address = new_address(*address);
            *address != 0
        });
    }

    /// Handles of objects in the heap.
    pub fn handles(&self) -> impl Iterator<Item = u32> {
        self.listed.iter().copied().filter(|&handle| self.entry(handle).address != 0)
    }

    /// The entry of a handle.
    pub fn entry(&self, handle: u32) -> Entry {
        self.entries[handle as usize]
    }

    /// Whether it is a root, or its last touch lies ahead.
    pub fn is_kept(&self, handle: u32) -> bool {
        let entry = self.entry(handle);
        entry.epoch & EPOCH == self.epoch || entry.is_held()
    }

    /// An object that a collection found dead although its last touch lies ahead.
    pub fn first_wronged(&self) -> Option<u32> {
        self.dead.iter().copied().find(|&handle| self.entry(handle).is_held())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(table: &mut Table) -> (bool, bool) {
        let root = table.present(true).count() == 1;
        (root, table.entry(1).is_held())
    }

    #[test]
    fn a_new_object_is_a_root_until_the_next_point_and_held_until_its_last_touch() {
        let mut table = Table::new(2);
        table.add(1, 64, 4);
        assert_eq!(flags(&mut table), (true, true));
        table.point();
        assert_eq!(flags(&mut table), (false, true));
        table.root(1);
        assert_eq!(flags(&mut table), (true, true));
        table.release(1);
        assert_eq!(flags(&mut table), (true, false));
        table.point();
        assert_eq!(flags(&mut table), (false, false));
        assert_eq!(table.address(1), 64);
    }

    #[test]
    fn an_object_that_has_ended_is_no_root_and_its_address_is_kept_until_it_is_found_dead() {
        let mut table = Table::new(2);
        table.add(0, 64, 4);
        table.add(1, 128, 2);
        table.end(0);
        assert_eq!((table.address(0), table.live_words, table.ended.clone()), (0, 2, vec![64]));
        assert_eq!(table.handles().collect::<Vec<_>>(), [1]);
        table.move_or_forget(|address| address);
        table.add(0, 192, 1);
        assert_eq!(table.handles().collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn a_handle_that_is_used_again_before_a_collection_is_listed_once() {
        let mut table = Table::new(1);
        for address in [64, 128, 192] {
            table.add(0, address, 1);
            table.end(0);
        }
        table.add(0, 256, 1);
        assert_eq!(table.handles().collect::<Vec<_>>(), [0]);
        assert_eq!(table.ended, [64, 128, 192]);
    }

    #[test]
    fn a_collection_forgets_what_it_finds_dead_and_leaves_roots_to_their_slots() {
        let mut table = Table::new(3);
        for handle in 0..3 {
            table.add(handle, 64 * (handle as usize + 1), 1);
        }
        table.end(2);
        table.point();
        table.root(0);
        table.move_or_forget(|address| if address == 128 { 0 } else { address + 1024 });
        assert_eq!((table.address(0), table.address(1), table.ended.clone()), (64, 0, vec![1216]));
        assert_eq!(table.first_wronged(), Some(1));
        table.release(1);
        assert_eq!(table.first_wronged(), None);
        assert_eq!(table.dead, [1]);
        assert_eq!(table.handles().collect::<Vec<_>>(), [0]);
    }
}
