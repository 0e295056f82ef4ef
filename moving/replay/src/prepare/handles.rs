//! Handles of live objects, and which of them is touched last next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::program::HANDLES;

/// The live objects.
#[derive(Debug, Default)]
pub(super) struct Handles {
    /// By number: handle and size.
    live: FxHashMap<u64, (u32, u64)>,
    free: Vec<u32>,
    most: u32,
    /// Last touches of live objects, the next one on top.
    touches: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Handles {
    /// A handle for a new object; none when there are no more.
    pub(super) fn add(&mut self, object: u64, size: u64, last_touch: u64) -> Option<u32> {
        let handle = match self.free.pop() {
            Some(handle) => handle,
            None => {
                let next = self.most;
                self.most = (next < HANDLES).then_some(next + 1)?;
                next
            }
        };
        self.live.insert(object, (handle, size));
        self.touches.push(Reverse((last_touch, handle)));
        Some(handle)
    }

    /// The handle of a live object.
    pub(super) fn of(&self, object: u64) -> Option<u32> {
        self.live.get(&object).map(|(handle, _)| *handle)
    }

    /// The handle and size of a live object.
    pub(super) fn with_size(&self, object: u64) -> Option<(u32, u64)> {
        self.live.get(&object).copied()
    }

    /// Ends an object; gives its handle and size.
    pub(super) fn end(&mut self, object: u64) -> Option<(u32, u64)> {
        let (handle, size) = self.live.remove(&object)?;
        self.free.push(handle);
        Some((handle, size))
    }

    /// An object whose last touch comes before this event, once.
    pub(super) fn released_before(&mut self, event: u64) -> Option<u32> {
        let Reverse((touch, _)) = *self.touches.peek()?;
        if touch > event {
            return None;
        }
        self.touches.pop().map(|Reverse((_, handle))| handle)
    }

    /// Handles ever used.
    pub(super) fn most(&self) -> u32 {
        self.most
    }
}
