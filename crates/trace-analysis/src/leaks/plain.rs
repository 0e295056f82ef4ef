//! What a plain trace shows: what was never freed, and what grows.

use std::collections::HashMap;

use heaptoll_callsites::Sum;
use heaptoll_trace::{Event, EventKind};

use super::found::{Found, SiteSums, add_freed_after_exit};
use super::series::LiveSeries;
use crate::objects::{MAX_SIZE, Object, Objects};

/// A slot: of a live object, or of none.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    size: u64,
    site: u32,
    is_live: bool,
}

impl Object for Block {
    #[inline(always)]
    fn is_alive(&self) -> bool {
        self.is_live
    }
}

/// Bytes kept for each object that is live at the same time as others.
pub const EACH_OBJECT: usize = size_of::<Block>();

/// Takes the events of a plain trace.
#[derive(Debug, Default)]
pub struct NeverFreedOf {
    objects: Objects<Block>,
    series: LiveSeries,
    allocated: Sum,
    clock_bytes: u64,
    /// By call stack.
    freed_after_exit: HashMap<u32, Sum>,
}

impl NeverFreedOf {
    /// Takes the next events.
    pub fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }

    /// Takes the next events, after `exit` had begun: of what was live then, only what is freed.
    pub fn events_after_exit(&mut self, events: &[Event]) {
        for event in events.iter().filter(|event| event.kind.allocates() || event.kind.frees()) {
            if let Some(before) = self.objects.take(event.slot) {
                self.freed_after_exit.entry(before.site).or_default().add(before.size);
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let size = event.size.min(MAX_SIZE);
        match event.kind {
            kind if kind.allocates() => {
                let block = Block { size, site: event.site, is_live: true };
                let before = self.objects.born(event.slot, block);
                self.end(before, event.time_ns);
                self.allocated.add(size);
                self.clock_bytes = self.clock_bytes.saturating_add(size);
                self.series.add(event.site, Sum { objects: 1, bytes: size }, self.clock_bytes, event.time_ns);
            }
            kind if kind.frees() => {
                let block = self.objects.ended(event.slot);
                self.end(block, event.time_ns);
            }
            EventKind::Realloc => self.resize(event.slot, size, event.time_ns),
            _ => {}
        }
    }

    /// An object keeps its site.
    fn resize(&mut self, slot: u32, size: u64, time_ns: u64) {
        let Some(block) = self.objects.resized(slot) else { return };
        let (old, site) = (std::mem::replace(&mut block.size, size), block.site);
        let growth = size.saturating_sub(old);
        self.allocated.bytes = self.allocated.bytes.saturating_add(growth);
        self.clock_bytes = self.clock_bytes.saturating_add(growth);
        let bytes = |bytes| Sum { objects: 0, bytes };
        match size > old {
            true => self.series.add(site, bytes(growth), self.clock_bytes, time_ns),
            false => self.series.remove(site, bytes(old - size), self.clock_bytes, time_ns),
        }
    }

    fn end(&mut self, block: Option<Block>, time_ns: u64) {
        if let Some(block) = block {
            let one = Sum { objects: 1, bytes: block.size };
            self.series.remove(block.site, one, self.clock_bytes, time_ns);
        }
    }

    /// What was found, when all events were taken: at `time_ns` the program ended, or `exit` began.
    pub fn finish(mut self, time_ns: u64) -> Found {
        self.series.end(time_ns);
        let mut sums: HashMap<u32, SiteSums> = HashMap::new();
        for (_, block) in self.objects.live() {
            sums.entry(block.site).or_default().kinds.unjudged.add(block.size);
        }
        add_freed_after_exit(&self.freed_after_exit, &mut sums);
        for SiteSums { kinds, .. } in sums.values_mut() {
            kinds.unjudged = kinds.unjudged.plus(kinds.freed_after_exit);
        }
        Found {
            sums,
            series: self.series,
            allocated: self.allocated,
            clock_bytes: self.clock_bytes,
            judged_at_bytes: None,
            goes_on: false,
            misfits: self.objects.misfits(),
        }
    }
}
