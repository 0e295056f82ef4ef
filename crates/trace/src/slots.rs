//! The slots of a trace while it is written: an object gets the one that was freed last, so that numbers stay small.

use crate::TraceError;

/// Marks a slot as free in the table of sizes.
const FREE: u64 = u64::MAX;

/// The slots so far.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Requested sizes by slot; [`FREE`] where none is live.
    sizes: Vec<u64>,
    /// Free slots, the last freed on top; the upper `local` of them were freed in this chunk.
    free: Vec<u32>,
    local: usize,
}

impl Slots {
    /// The slot of a new object, and whether a reader of the chunk predicts it.
    ///
    /// # Errors
    /// There are too many objects.
    #[inline(always)]
    pub(crate) fn assign(&mut self, size: u64) -> Result<(u32, bool), TraceError> {
        let Some(slot) = self.free.pop() else { return Ok((self.add(size)?, true)) };
        let predicted = self.local > 0;
        self.local -= usize::from(predicted);
        self.sizes[slot as usize] = size;
        Ok((slot, predicted))
    }

    #[cold]
    fn add(&mut self, size: u64) -> Result<u32, TraceError> {
        let slot = u32::try_from(self.sizes.len()).ok().filter(|&slot| slot < u32::MAX - 1);
        let slot = slot.ok_or(TraceError::TooManyObjects)?;
        self.sizes.push(size);
        Ok(slot)
    }

    /// A live object gets another size; returns the one before.
    ///
    /// # Errors
    /// It is not live.
    #[inline(always)]
    pub(crate) fn resize(&mut self, slot: u32, size: u64) -> Result<u64, TraceError> {
        let Some(old) = self.sizes.get_mut(slot as usize).filter(|old| **old != FREE) else {
            return Err(TraceError::NotLive { slot });
        };
        Ok(std::mem::replace(old, size))
    }

    /// A live object ends; returns its size.
    ///
    /// # Errors
    /// It is not live.
    #[inline(always)]
    pub(crate) fn release(&mut self, slot: u32) -> Result<u64, TraceError> {
        let size = self.resize(slot, FREE)?;
        self.free.push(slot);
        self.local += 1;
        Ok(size)
    }

    /// Requested bytes of a live object.
    pub(crate) fn size(&self, slot: u32) -> Option<u64> {
        self.sizes.get(slot as usize).copied().filter(|&size| size != FREE)
    }

    /// Slots so far.
    pub(crate) fn count(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// A chunk begins.
    pub(crate) fn begin_chunk(&mut self) {
        self.local = 0;
    }
}
