//! What a replay and its collector share: the table of objects, what collections have done, and the trace's own graph
//! where they are checked.

use heaptoll_moving_answers::{Collections, PAGE};

use crate::check::Model;
use crate::clock::Span;
use crate::settings::Settings;
use crate::simulate;
use crate::table::Table;

/// See the module.
#[derive(Debug)]
pub struct World {
    /// Pages of the heap, of 4 KiB.
    pub heap_pages: usize,
    /// Where objects are.
    pub table: Table,
    /// What collections have done.
    pub record: Collections,
    /// What the replay simulates.
    pub simulate: Option<simulate::Settings>,
    /// The trace's own graph, where collections are checked.
    pub model: Option<Model>,
}

impl World {
    /// That of a replay that begins, of a program of so many handles.
    pub fn new(handles: u32, settings: &Settings) -> World {
        World {
            heap_pages: (settings.heap_bytes / PAGE).max(1) as usize,
            table: Table::new(handles),
            record: Collections::default(),
            simulate: settings.simulate.clone(),
            model: settings.check.then(|| Model::new(handles)),
        }
    }

    /// A pass over the table in a collection: its time is bookkeeping.
    pub fn bookkeeping<T>(&mut self, pass: impl FnOnce(&mut World) -> T) -> T {
        let begin = Span::begin();
        let result = pass(self);
        self.record.bookkeeping_cpu_ns += begin.cpu_ns();
        self.record.bookkeeping_ns += begin.elapsed_ns();
        result
    }

    /// Counts objects that only their last touch ahead keeps in a collection.
    pub fn count_hidden(&mut self, objects: u64) {
        self.record.hidden += objects;
        self.record.most_hidden = self.record.most_hidden.max(objects);
    }

    /// Has the table forget what a collection found dead, as [`Table::move_or_forget`] does. An object whose last touch
    /// lies ahead may not be among it.
    pub fn forget_dead(&mut self, new_address: impl FnMut(usize) -> usize) {
        self.table.move_or_forget(new_address);
        if let Some(handle) = self.table.first_wronged() {
            let bytes = u64::from(self.table.entry(handle).words) * 8;
            let text = format!("an object of {bytes} bytes is gone, and its last touch lies ahead");
            self.record.violation.get_or_insert(text);
        }
    }

    /// Compares the heap with the trace's graph after a collection, unless one before was wrong.
    ///
    /// # Safety
    /// Nothing else uses the heap, the collection is complete, and the table is up to date.
    pub unsafe fn check(&mut self) {
        let begin = Span::begin();
        if let Some(model) = &mut self.model
            && !self.record.is_wrong()
        {
            // SAFETY: the precondition of this function.
            self.record.violation = unsafe { model.check(&self.table, &mut self.record) }.err();
        }
        self.record.check_ns += begin.elapsed_ns();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn bookkeeping_that_waits_takes_time_and_no_cpu_time() {
        let mut world = World::new(1, &Settings { heap_bytes: PAGE, check: false, simulate: None });
        world.bookkeeping(|_| std::thread::sleep(Duration::from_millis(200)));
        let record = &world.record;
        assert!(record.bookkeeping_ns >= 200_000_000, "{record:?}");
        assert!(record.bookkeeping_cpu_ns < record.bookkeeping_ns / 2, "{record:?}");
    }
}
