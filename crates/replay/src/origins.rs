//! Where the objects of a trace come from: call site and time by slot, up to an event.

use std::path::Path;

use heaptoll_trace::{Event, EventKind, Memory};

use crate::error::ReplayError;
use crate::source::{FileSource, Source};

/// Bytes kept of each slot.
pub const EACH_ORIGIN: usize = size_of::<Origin>();

/// Of an object: who allocated it, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// The call site; 0 where not recorded. A resize leaves it as it is.
    pub site: u32,
    /// Bytes allocated before it.
    pub allocated_at_bytes: u64,
    size: u64,
}

/// A reader of a trace that keeps the origin of each slot's object.
pub struct Origins {
    source: FileSource,
    /// Events of the last batch that were not needed yet, the next one last.
    ahead: Vec<Event>,
    taken: u64,
    by_slot: Vec<Origin>,
    clock_bytes: u64,
}

impl Origins {
    /// At the beginning of a trace.
    ///
    /// # Errors
    /// It is no trace, or cannot be read.
    pub fn open(path: &Path, memory: Memory) -> Result<Origins, ReplayError> {
        let source = FileSource::open(path, memory)?;
        Ok(Origins { source, ahead: Vec::new(), taken: 0, by_slot: Vec::new(), clock_bytes: 0 })
    }

    /// Reads on until this number of events, or to the end.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn read_to(&mut self, events: u64) -> Result<(), ReplayError> {
        while self.taken < events {
            match self.ahead.pop() {
                Some(event) => self.take(&event),
                None => match self.source.events()? {
                    Some(batch) => self.ahead.extend(batch.iter().rev()),
                    None => return Ok(()),
                },
            }
        }
        Ok(())
    }

    /// The origin of the object in a slot.
    pub fn of(&self, slot: u32) -> Origin {
        self.by_slot.get(slot as usize).copied().unwrap_or_default()
    }

    /// Bytes allocated until now: requested, and what resizes grew by.
    pub fn clock_bytes(&self) -> u64 {
        self.clock_bytes
    }

    fn take(&mut self, event: &Event) {
        self.taken += 1;
        let is_new = event.kind.allocates();
        if !is_new && event.kind != EventKind::Realloc {
            return;
        }
        let slot = event.slot as usize;
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, Origin::default());
        }
        let origin = &mut self.by_slot[slot];
        if is_new {
            *origin = Origin { site: event.site, allocated_at_bytes: self.clock_bytes, size: 0 };
        }
        self.clock_bytes = self.clock_bytes.saturating_add(event.size.saturating_sub(origin.size));
        origin.size = event.size;
    }
}
