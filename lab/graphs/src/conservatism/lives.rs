//! The first pass: when each object is touched last, and when it is freed.

use std::collections::HashMap;
use std::io;

use heaptoll_trace::graph::{Event, LastTouch};
use heaptoll_trace_analysis::by_object::ByObject;

/// Last touches and frees, by order of allocation.
#[derive(Debug, Default)]
pub struct Lives {
    /// The number of the event before which it is touched last (0: never), and the clock of its free (the largest number:
    /// none). Of an object whose end is not in the trace both are the largest number: it may be used at any time.
    all: ByObject<[u64; 2]>,
    live: HashMap<u64, usize>,
    clock_bytes: u64,
}

impl Lives {
    /// Takes events in order.
    ///
    /// # Errors
    /// There is no space for the temporary file.
    pub fn events(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            match *event {
                Event::Allocate { object, size, .. } => {
                    self.live.insert(object, self.all.add()?);
                    self.clock_bytes = self.clock_bytes.saturating_add(size);
                }
                Event::RootsBegin { clock_bytes } => self.clock_bytes = clock_bytes,
                Event::Free { object, last_touch, .. } => self.end(object, last_touch, self.clock_bytes),
                Event::Kept { object, last_touch } => self.end(object, last_touch, u64::MAX),
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, object: u64, last_touch: Option<LastTouch>, freed_bytes: u64) {
        if let Some(number) = self.live.remove(&object) {
            self.all.set(number, [last_touch.map_or(0, |touch| touch.event), freed_bytes]);
        }
    }

    /// Objects.
    pub fn count(&self) -> usize {
        self.all.count()
    }

    /// Of the object that was allocated after so many: the event before which it is touched last, and the clock of its
    /// free.
    pub(super) fn of(&self, number: usize) -> (u64, u64) {
        let [used_until, freed_bytes] = self.all.get(number);
        (used_until, freed_bytes)
    }
}
