//! The first pass: of each object, by number, its last touch and the words that ever hold pointers.

use std::path::Path;

use heaptoll_trace::graph::{Batch, Event, Reader};

use crate::error::Error;

/// Bytes that the table takes for an object.
const EACH_BYTES: u64 = 12;
/// Later than every event.
const NEVER: u64 = u64::MAX;

const fn needs_bytes(objects: u64) -> u64 {
    objects.saturating_mul(EACH_BYTES)
}

/// What is known of an object from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// The event before which the last touch happens; 0 when it is never touched.
    pub last_touch: u64,
    /// Words from its start that ever hold pointers.
    pub scanned: u32,
}

/// All objects of a trace.
#[derive(Debug, Default)]
pub(super) struct Lives {
    last_touches: Vec<u64>,
    scanned: Vec<u32>,
}

impl Lives {
    pub(super) fn read(trace: &Path, limit_bytes: u64) -> Result<Lives, Error> {
        let path = trace.display().to_string();
        let mut reader = Reader::open(trace)?;
        let mut lives = Lives::default();
        let (mut batch, mut objects) = (Batch::default(), 0);
        while reader.read(&mut batch)? {
            objects = batch.objects;
            // The rest is read all the same: it is refused with what it needs as a whole.
            if needs_bytes(objects) <= limit_bytes {
                lives.grow(objects);
                batch.events.iter().for_each(|event| lives.event(event));
            }
        }
        if needs_bytes(objects) > limit_bytes {
            return Err(Error::Memory { path, objects, needs_bytes: needs_bytes(objects), limit_bytes });
        }
        if lives.last_touches.is_empty() { Err(Error::Empty(path)) } else { Ok(lives) }
    }

    fn grow(&mut self, objects: u64) {
        let objects = objects as usize;
        if objects > self.scanned.len() {
            self.last_touches.resize(objects, NEVER);
            self.scanned.resize(objects, 0);
        }
    }

    fn event(&mut self, event: &Event) {
        match *event {
            Event::Edge { from, offset, .. } => {
                if let Some(scanned) = self.scanned.get_mut(from as usize) {
                    *scanned = (*scanned).max((offset / 8) as u32 + 1);
                }
            }
            Event::Free { object, last_touch, .. } | Event::Kept { object, last_touch } => {
                if let Some(known) = self.last_touches.get_mut(object as usize) {
                    *known = last_touch.map_or(0, |touch| touch.event);
                }
            }
            _ => {}
        }
    }

    pub(super) fn of(&self, object: u64) -> Life {
        let at = object as usize;
        Life {
            last_touch: self.last_touches.get(at).copied().unwrap_or(NEVER),
            scanned: self.scanned.get(at).copied().unwrap_or(0),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.last_touches.len() as u64
    }

    /// Objects whose end is missing.
    pub(super) fn endless(&self) -> u64 {
        self.last_touches.iter().filter(|&&touch| touch == NEVER).count() as u64
    }
}
