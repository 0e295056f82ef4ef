//! The objects that are live at the reader's position: this makes every sequence of events a legal one.
//!
//! Without damage, the file is checked: a slot is allocated when it is free, and freed when it is live. Once events are
//! missing, this no longer holds: then a free of an object whose allocation is missing becomes
//! [`EventKind::Foreign`](crate::EventKind::Foreign), a resize of one a `Malloc`, and the allocation of a slot whose
//! free is missing is preceded by a [`EventKind::Lost`](crate::EventKind::Lost). Slots that the file numbers higher
//! than the number of events read are renumbered, so that tables by slot never grow beyond that number.

use std::collections::HashMap;

/// Bytes that are kept of a slot that was renumbered.
const RENAMED: u64 = 24;

/// The live slots.
#[derive(Debug, Default)]
pub(crate) struct Live {
    bits: Vec<u64>,
    /// Slots assigned so far: numbers are below it.
    slots: u32,
    /// Set when events are missing: slots at or above it are numbered by `renamed`.
    missing: Option<u32>,
    renamed: HashMap<u32, u32>,
}

impl Live {
    /// Slots assigned so far.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots that were renumbered.
    pub(crate) fn renamed(&self) -> usize {
        self.renamed.len()
    }

    /// Bytes that it takes, with what the user of the reader keeps for each slot.
    pub(crate) fn needs_bytes(&self, each_object_bytes: u64) -> u64 {
        let objects = u64::from(self.slots).saturating_mul(each_object_bytes);
        let own = (self.renamed.len() as u64).saturating_mul(RENAMED);
        objects.saturating_add(u64::from(self.slots) / 8).saturating_add(own)
    }

    /// Whether events are missing.
    pub(crate) fn missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Events are missing from here on.
    pub(crate) fn miss(&mut self) {
        self.missing.get_or_insert(self.slots);
    }

    #[inline(always)]
    pub(crate) fn is_live(&self, slot: u32) -> bool {
        self.bits.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }

    /// A new slot, next in number.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> u32 {
        let slot = self.slots;
        if slot as usize / 64 == self.bits.len() {
            self.bits.push(0);
        }
        self.slots += 1;
        slot
    }

    /// The reader's number of the file's slot, for an allocation.
    pub(crate) fn slot_for_allocation(&mut self, slot: u32) -> Option<u32> {
        match self.missing {
            None => (slot < self.slots).then_some(slot),
            Some(base) if slot < base => Some(slot),
            Some(_) => {
                if let Some(&known) = self.renamed.get(&slot) {
                    return Some(known);
                }
                if self.slots >= u32::MAX - 1 {
                    return None;
                }
                let new = self.next();
                self.renamed.insert(slot, new);
                Some(new)
            }
        }
    }

    /// The reader's number of the file's slot, for a free or resize; none when it is not known.
    #[inline(always)]
    pub(crate) fn find(&self, slot: u32) -> Option<u32> {
        match self.missing {
            None => Some(slot),
            Some(base) if slot < base => Some(slot),
            Some(_) => self.renamed.get(&slot).copied(),
        }
    }

    /// Marks a slot below [`Live::slots`] as live. False when it was already.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: u32) -> bool {
        let bit = 1 << (slot % 64);
        let word = &mut self.bits[slot as usize / 64];
        let was = *word & bit;
        *word |= bit;
        was == 0
    }

    /// Marks a slot as free. False when it was not live.
    #[inline(always)]
    pub(crate) fn clear(&mut self, slot: u32) -> bool {
        let Some(word) = self.bits.get_mut(slot as usize / 64) else { return false };
        let bit = 1 << (slot % 64);
        let was = *word & bit;
        *word &= !bit;
        was != 0
    }
}
