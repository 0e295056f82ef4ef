//! When to collect: when the heap is full, as MMTk's own policy for heaps of a fixed size does.
//!
//! The policy is ours for its maximum: MMTk makes tables of free pages by it and fails where they would be small, so
//! that a small heap needs a large maximum.

use mmtk::util::heap::{GCTriggerPolicy, SpaceStats};
use mmtk::{MMTK, Plan};

use crate::vm::Binding;

/// Pages of the largest heap: 1 TiB.
const MOST_PAGES: usize = 1 << 28;

/// See the module.
#[derive(Debug)]
pub struct Trigger {
    /// Pages of the heap.
    pub pages: usize,
    /// Whether the plan ever collects.
    pub collects: bool,
}

impl GCTriggerPolicy<Binding> for Trigger {
    fn on_pause_start(&self, mmtk: &'static MMTK<Binding>) {
        // SAFETY: the mutator waits, and one worker begins the pause.
        let record = unsafe { &mut crate::statics::world().record };
        record.most_pages = record.most_pages.max(mmtk.get_plan().get_reserved_pages() as u64);
    }

    fn is_gc_required(
        &self,
        space_full: bool,
        space: Option<SpaceStats<Binding>>,
        plan: &dyn Plan<VM = Binding>,
    ) -> bool {
        self.collects && plan.collection_required(space_full, space)
    }

    fn is_heap_full(&self, plan: &dyn Plan<VM = Binding>) -> bool {
        plan.get_reserved_pages() > self.pages
    }

    fn get_current_heap_size_in_pages(&self) -> usize {
        self.pages
    }

    fn get_max_heap_size_in_pages(&self) -> usize {
        MOST_PAGES.max(self.pages)
    }

    fn can_heap_size_grow(&self) -> bool {
        false
    }
}
