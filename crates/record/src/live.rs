//! Finds the object of a block: a table from the addresses of live blocks to their slots.
//!
//! It is a shadow of the program's heap: one entry for every 16 bytes of address space that ever held a block, found by
//! two table look-ups, so there are no collisions, no growth and no deletion marks, and blocks that are neighbours in
//! the heap are neighbours here. A heap of the smallest blocks has a shadow of a quarter of its size; a hash table that
//! is sparse enough to be fast takes more. Pages without an entry are never touched.

use std::collections::HashMap;
use std::ops::Range;

/// Address space that a chunk covers, as a power of two, bytes.
const CHUNK_SHIFT: u32 = 16;
/// Entries of a chunk: blocks lie 16 bytes apart. Those at an odd multiple of 8 have chunks of their own, since few
/// managers return any.
const ENTRIES: usize = 1 << (CHUNK_SHIFT - 4);
/// Bits of an address that the tables use: user space has 47.
const ADDRESS_BITS: u32 = 47;
/// Bits of a chunk's number that the lower table resolves; the upper one does the rest. The number's lowest bit is the
/// plane: 1 for blocks at an odd multiple of 8.
const LOWER_BITS: u32 = 16;
const UPPER_BITS: u32 = ADDRESS_BITS - CHUNK_SHIFT + 1 - LOWER_BITS;

/// Slot plus one by entry, 0 where no live block begins; the last word counts those that are not 0.
type Chunk = [u32; ENTRIES + 1];
const COUNT: usize = ENTRIES;
type Lower = [Option<Box<Chunk>>; 1 << LOWER_BITS];
type Upper = [Option<Box<Lower>>; 1 << UPPER_BITS];

/// The table.
pub struct LiveBlocks {
    upper: Box<Upper>,
    /// Blocks whose address is no multiple of 8, or lies outside user space of most machines.
    odd: HashMap<u64, u32>,
    live: usize,
}

/// Whether a block has no entry in the shadow.
#[inline(always)]
fn is_odd(block: u64) -> bool {
    block & !(((1 << ADDRESS_BITS) - 1) & !7) != 0
}

/// Chunk number, and entry in it.
#[inline(always)]
fn position(block: u64) -> (usize, usize) {
    let plane = (block >> 3) & 1;
    ((((block >> CHUNK_SHIFT) << 1) | plane) as usize, (block >> 4) as usize & (ENTRIES - 1))
}

/// An array of zeroes from the system, which commits no page before it is written to.
fn zeroed<T: Clone, const N: usize>(zero: T) -> Box<[T; N]> {
    let Ok(array) = vec![zero; N].into_boxed_slice().try_into() else { unreachable!("it has N elements") };
    array
}

impl Default for LiveBlocks {
    fn default() -> LiveBlocks {
        LiveBlocks { upper: zeroed(None), odd: HashMap::new(), live: 0 }
    }
}

impl LiveBlocks {
    /// Puts an object at `block`: the slot that `slot` returns. `slot` is passed the slot of the object that was there,
    /// if one was.
    ///
    /// # Errors
    /// Those of `slot`; the entry is then empty.
    #[inline(always)]
    pub fn put<E>(&mut self, block: u64, slot: impl FnOnce(Option<u32>) -> Result<u32, E>) -> Result<(), E> {
        if is_odd(block) {
            let before = self.take_odd(block);
            let slot = slot(before)?;
            self.put_odd(block, slot);
            return Ok(());
        }
        let (chunk, entry) = position(block);
        let chunk = match find(&mut self.upper, chunk) {
            Some(found) => found,
            None => make(&mut self.upper, chunk),
        };
        let before = std::mem::take(&mut chunk[entry]);
        let was = u32::from(before != 0);
        chunk[COUNT] -= was;
        self.live -= was as usize;
        let slot = slot(before.checked_sub(1))?;
        chunk[entry] = slot + 1;
        chunk[COUNT] += 1;
        self.live += 1;
        Ok(())
    }

    /// Takes away the object at `block` and gives its slot; `None` when none is known there.
    #[inline]
    pub fn take(&mut self, block: u64) -> Option<u32> {
        if is_odd(block) {
            return self.take_odd(block);
        }
        let (chunk, entry) = position(block);
        let chunk = find(&mut self.upper, chunk)?;
        let before = std::mem::replace(&mut chunk[entry], 0);
        if before == 0 {
            return None;
        }
        chunk[COUNT] -= 1;
        self.live -= 1;
        Some(before - 1)
    }

    #[cold]
    fn put_odd(&mut self, block: u64, slot: u32) {
        let before = self.odd.insert(block, slot);
        self.live += usize::from(before.is_none());
    }

    #[cold]
    fn take_odd(&mut self, block: u64) -> Option<u32> {
        let before = self.odd.remove(&block);
        self.live -= usize::from(before.is_some());
        before
    }

    /// Live blocks.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether a live block begins in this range of addresses.
    pub fn any_in(&self, range: &Range<u64>) -> bool {
        let mut found = false;
        self.walk(range, &mut |_, _| {
            found = true;
            false
        });
        found
    }

    /// Calls `each` with the address and slot of every live block, in no order.
    pub fn each(&self, each: &mut dyn FnMut(u64, u32)) {
        self.walk(&(0..u64::MAX), &mut |block, slot| {
            each(block, slot);
            true
        });
    }

    /// Calls `each` with the ranges of addresses in which blocks have ever begun, 64 KiB each.
    pub fn ever(&self, each: &mut dyn FnMut(u64, u64)) {
        for (upper, lower) in self.upper.iter().enumerate() {
            for (lower, _) in
                lower.iter().flat_map(|lower| lower.iter()).enumerate().filter(|(_, chunk)| chunk.is_some())
            {
                let start = ((upper << LOWER_BITS | lower) as u64 >> 1) << CHUNK_SHIFT;
                each(start, start + (1 << CHUNK_SHIFT));
            }
        }
    }

    fn walk(&self, range: &Range<u64>, each: &mut dyn FnMut(u64, u32) -> bool) {
        if self.odd.iter().any(|(&block, &slot)| range.contains(&block) && !each(block, slot))
            || range.is_empty()
        {
            return;
        }
        let last = (range.end - 1).min((1 << ADDRESS_BITS) - 1);
        let first_chunk = position(range.start.min(last) & !8).0;
        let last_chunk = position(last | 8).0;
        for upper in first_chunk >> LOWER_BITS..=last_chunk >> LOWER_BITS {
            let Some(lower) = self.upper[upper].as_deref() else { continue };
            let base = upper << LOWER_BITS;
            let from = first_chunk.max(base) - base;
            let to = last_chunk.min(base + lower.len() - 1) - base;
            for (offset, chunk) in lower[from..=to].iter().enumerate() {
                let Some(chunk) = chunk.as_deref().filter(|chunk| chunk[COUNT] > 0) else { continue };
                let number = (base + from + offset) as u64;
                let start = ((number >> 1) << CHUNK_SHIFT) | ((number & 1) << 3);
                for (entry, &slot) in chunk[..ENTRIES].iter().enumerate().filter(|(_, slot)| **slot != 0) {
                    let block = start + (entry as u64) * 16;
                    if range.contains(&block) && !each(block, slot - 1) {
                        return;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn find(upper: &mut Upper, chunk: usize) -> Option<&mut Chunk> {
    upper[chunk >> LOWER_BITS].as_deref_mut()?[chunk & ((1 << LOWER_BITS) - 1)].as_deref_mut()
}

#[cold]
#[inline(never)]
fn make(upper: &mut Upper, chunk: usize) -> &mut Chunk {
    let lower = upper[chunk >> LOWER_BITS].get_or_insert_with(|| zeroed(None));
    lower[chunk & ((1 << LOWER_BITS) - 1)].get_or_insert_with(|| zeroed(0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = u64> {
        // A brk segment, an arena of another thread, the end of user space, what lies after it, and the beginning.
        let base = prop_oneof![
            Just(0x5555_5555_0000u64),
            Just(0x7fff_f000_0000),
            Just((1 << 47) - (1 << 14)),
            Just(1 << 56),
            Just(0)
        ];
        (base, 0..4096u64, prop_oneof![4 => Just(8u64), 1 => Just(5)])
            .prop_map(|(base, offset, step)| base + offset * step)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_answers_as_a_map_does(
            operations in proptest::collection::vec((any::<bool>(), address(), 0..u32::MAX - 1), 0..600),
            start in address(),
            length in 0..100_000u64,
        ) {
            let (mut table, mut model) = (LiveBlocks::default(), BTreeMap::new());
            for (put, block, slot) in operations {
                if put {
                    let mut before = None;
                    let put = table.put(block, |was| {
                        before = was;
                        if slot % 8 == 0 { Err(()) } else { Ok(slot) }
                    });
                    prop_assert_eq!(before, model.remove(&block));
                    prop_assert_eq!(put.is_err(), slot % 8 == 0);
                    if put.is_ok() {
                        model.insert(block, slot);
                    }
                } else {
                    prop_assert_eq!(table.take(block), model.remove(&block));
                }
                prop_assert_eq!(table.len(), model.len());
            }
            let mut all = Vec::new();
            table.each(&mut |block, slot| all.push((block, slot)));
            all.sort_unstable();
            prop_assert_eq!(all, model.iter().map(|(&block, &slot)| (block, slot)).collect::<Vec<_>>());
            let range = start..start + length;
            prop_assert_eq!(table.any_in(&range), model.range(range).next().is_some());
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_ever_was() {
        let mut table = LiveBlocks::default();
        assert_eq!(table.take(0x1234_5678), None);
        assert_eq!(table.len(), 0);
        assert!(!table.any_in(&(0..u64::MAX)));
    }
}
