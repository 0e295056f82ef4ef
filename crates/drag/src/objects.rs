//! Live objects by address: finds the object that contains an address in a few loads, while objects come and go.
//!
//! Every granule of 16 bytes that an object overlaps leads to it. Granules are kept in pages, pages in regions, and a
//! page or region that one object fills needs no granules, so that the memory is proportional to the live heap. Where
//! several objects share a granule (managers may align to less), it leads to the last of them, and each object to the
//! one before it in its own first granule: no other granule can contain both an object's start and bytes before it.

mod granules;
mod index;

use granules::{Granules, MapEntry};
pub use index::Index;
use index::NONE;

/// The first number too large for an object.
const LIMIT: Index = 1 << 31;
/// Bits of an address.
const ADDRESS_BITS: u32 = 48;

/// Why an object was not inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertError {
    /// It overlaps this one, which must be removed first.
    Overlaps(Index),
    /// It does not lie below 2^48, the limit of user addresses.
    OutOfRange,
    /// There are 2^31 objects.
    Full,
}

#[derive(Debug, Clone, Default)]
struct Slot<T> {
    /// First byte.
    start: u64,
    /// First byte after it; an object of size 0 takes one byte. Not above `start` in an empty slot.
    end: u64,
    /// The object before it in its first granule; for an empty slot the next empty one.
    link: Index,
    value: T,
}

impl<T> Slot<T> {
    #[inline(always)]
    fn has(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// Objects that do not overlap, each with a value.
#[derive(Debug)]
pub struct Objects<T> {
    /// The first is unused.
    slots: Vec<Slot<T>>,
    /// First of the empty slots.
    empty: Index,
    live: usize,
    /// The one found last: most references hit the same object as the one before.
    recent: Index,
    granules: Granules,
}

impl<T: Default> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects::new()
    }
}

impl<T: Default> Objects<T> {
    /// No objects yet.
    pub fn new() -> Objects<T> {
        Objects {
            slots: vec![Slot { start: 0, end: 0, link: NONE, value: T::default() }],
            empty: NONE,
            live: 0,
            recent: NONE,
            granules: Granules::new(),
        }
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Inserts an object of `size` bytes; one of size 0 takes one byte.
    ///
    /// # Errors
    /// [`InsertError`]; nothing has changed.
    pub fn insert(&mut self, start: u64, size: u64, value: T) -> Result<Index, InsertError> {
        let end = start.checked_add(size.max(1)).filter(|end| *end <= 1 << ADDRESS_BITS);
        let end = end.ok_or(InsertError::OutOfRange)?;
        if let Some(other) = self.overlapping(start, end) {
            return Err(InsertError::Overlaps(other));
        }
        let slot = Slot { start, end, link: NONE, value };
        let index = match self.empty {
            NONE if self.slots.len() as u64 >= u64::from(LIMIT) => return Err(InsertError::Full),
            NONE => {
                self.slots.push(slot);
                (self.slots.len() - 1) as Index
            }
            index => {
                self.empty = self.slots[index as usize].link;
                self.slots[index as usize] = slot;
                index
            }
        };
        self.live += 1;
        let Objects { granules, slots, .. } = self;
        granules.each_mut(start, end, |map_entry| match map_entry {
            MapEntry::Whole(entry) => *entry = index,
            MapEntry::Granule(entry, first) => put(slots, entry, index, first),
        });
        Ok(index)
    }

    /// Removes the object that begins at `start`.
    pub fn remove(&mut self, start: u64) -> Option<T> {
        let index = self.find(start).filter(|index| self.slots[*index as usize].start == start)?;
        Some(self.take(index))
    }

    /// Removes an object by its number.
    pub fn take(&mut self, index: Index) -> T {
        let (start, end) = (self.slots[index as usize].start, self.slots[index as usize].end);
        let Objects { granules, slots, .. } = self;
        granules.each_mut(start, end, |map_entry| match map_entry {
            MapEntry::Whole(entry) => *entry = NONE,
            MapEntry::Granule(entry, first) => cut(slots, entry, index, first),
        });
        let empty = std::mem::replace(&mut self.empty, index);
        let slot = Slot { start: 0, end: 0, link: empty, value: T::default() };
        self.live -= 1;
        std::mem::replace(&mut self.slots[index as usize], slot).value
    }

    /// The object that contains an address.
    #[inline(always)]
    pub fn find(&mut self, address: u64) -> Option<Index> {
        if self.slots[self.recent as usize].has(address) {
            return Some(self.recent);
        }
        let found = self.lookup(address)?;
        self.recent = found;
        Some(found)
    }

    #[inline(always)]
    fn lookup(&self, address: u64) -> Option<Index> {
        let mut index = self.granules.get(address);
        while index != NONE {
            let slot = &self.slots[index as usize];
            if slot.start <= address {
                return (address < slot.end).then_some(index);
            }
            index = slot.link;
        }
        None
    }

    /// One of the objects that overlap the addresses from `start` to before `end`.
    pub fn overlapping(&self, start: u64, end: u64) -> Option<Index> {
        let end = end.min(1 << ADDRESS_BITS);
        if start >= end {
            return None;
        }
        self.granules.find(start, end, |mut index| {
            while index != NONE {
                let slot = &self.slots[index as usize];
                if slot.start < end && start < slot.end {
                    return Some(index);
                }
                index = slot.link;
            }
            None
        })
    }

    /// Start of an object.
    pub fn start(&self, index: Index) -> u64 {
        self.slots[index as usize].start
    }

    /// Its value.
    #[inline(always)]
    pub fn get(&self, index: Index) -> &T {
        &self.slots[index as usize].value
    }

    /// Its value, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, index: Index) -> &mut T {
        &mut self.slots[index as usize].value
    }

    /// All objects, in no order: start and value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.slots.iter().filter(|slot| slot.end > slot.start).map(|slot| (slot.start, &slot.value))
    }

    /// All values, in no order.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().filter(|slot| slot.end > slot.start).map(|slot| slot.value)
    }

    /// Memory of the index, without the values, bytes.
    pub fn overhead_bytes(&self) -> usize {
        self.slots.capacity() * (size_of::<Slot<T>>() - size_of::<T>()) + self.granules.bytes()
    }

    /// Checks all invariants. Slow.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut entry_count = 0;
        for (index, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.end > slot.start) {
            for address in [slot.start, slot.end - 1, slot.start + (slot.end - slot.start) / 2] {
                if self.lookup(address) != Some(index as Index) {
                    return Err(format!("{address:#x} does not lead to object {index}"));
                }
            }
            entry_count += granules::entry_count(slot.start, slot.end);
        }
        let mut seen = 0;
        for (start, end, mut index) in self.granules.entries() {
            let mut before = u64::MAX;
            while index != NONE {
                let slot = &self.slots[index as usize];
                if slot.start >= end || slot.end <= start || slot.start >= before {
                    return Err(format!("object {index} is wrong at {start:#x}"));
                }
                // Links from an object that began before this granule belong to another granule.
                seen += 1;
                before = slot.start;
                index = if slot.start >= start { slot.link } else { NONE };
            }
        }
        let live = self.slots.iter().filter(|slot| slot.end > slot.start).count();
        match (live == self.live, seen == entry_count) {
            (true, true) => self.granules.check(),
            (false, _) => Err(format!("{live} objects are there, {} counted", self.live)),
            (_, false) => Err(format!("{entry_count} entries are needed, {seen} are set")),
        }
    }
}

/// Inserts an object into a granule's chain, later starts first. `first`: it starts in this granule.
#[inline(always)]
fn put<T>(slots: &mut [Slot<T>], entry: &mut Index, index: Index, first: bool) {
    let start = slots[index as usize].start;
    if *entry == NONE || slots[*entry as usize].start < start {
        if first {
            slots[index as usize].link = *entry;
        }
        *entry = index;
        return;
    }
    let mut later = *entry;
    loop {
        let next = slots[later as usize].link;
        if next == NONE || slots[next as usize].start < start {
            slots[later as usize].link = index;
            if first {
                slots[index as usize].link = next;
            }
            return;
        }
        later = next;
    }
}

/// Removes an object from a granule's chain.
#[inline(always)]
fn cut<T>(slots: &mut [Slot<T>], entry: &mut Index, index: Index, first: bool) {
    let before = if first { slots[index as usize].link } else { NONE };
    if *entry == index {
        *entry = before;
        return;
    }
    let mut later = *entry;
    while later != NONE {
        if slots[later as usize].link == index {
            slots[later as usize].link = before;
            return;
        }
        later = slots[later as usize].link;
    }
}

#[cfg(test)]
mod tests;
