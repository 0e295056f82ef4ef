//! The trace's own graph: after a collection, what it reaches must be there unchanged.

use std::collections::BTreeMap;

use heaptoll_moving_answers::Collections;

use crate::header::{Header, WORD};
use crate::table::Table;

/// The graph as the trace has it.
#[derive(Debug)]
pub struct Model {
    objects: Vec<Object>,
    /// Objects so far.
    next: u64,
    /// Marks of the check that runs.
    round: u32,
}

#[derive(Debug, Clone, Default)]
struct Object {
    number: u64,
    /// What words lead to.
    edges: BTreeMap<u32, u32>,
    marked: u32,
}

impl Model {
    /// One of so many handles.
    pub fn new(handles: u32) -> Model {
        Model { objects: vec![Object::default(); handles as usize], next: 0, round: 0 }
    }

    /// A new object.
    pub fn add(&mut self, handle: u32) {
        self.objects[handle as usize] = Object { number: self.next, ..Object::default() };
        self.next += 1;
    }

    /// A word leads to an object, or to none.
    pub fn set(&mut self, from: u32, word: u32, to: Option<u32>) {
        let edges = &mut self.objects[from as usize].edges;
        match to {
            Some(to) => edges.insert(word, to),
            None => edges.remove(&word),
        };
    }

    /// The trace ends the object.
    pub fn end(&mut self, handle: u32) {
        self.objects[handle as usize] = Object::default();
    }

    /// Compares the heap after a collection with the graph, and counts.
    ///
    /// # Errors
    /// An object that the trace reaches is gone or changed.
    ///
    /// # Safety
    /// Nothing else uses the heap: the mutator waits, and the collection is complete. Addresses in the table are those
    /// of objects in the heap.
    pub unsafe fn check(&mut self, table: &Table, record: &mut Collections) -> Result<(), String> {
        for handle in &table.dead {
            self.objects[*handle as usize].edges.clear();
        }
        let reached = self.reach(table);
        if let Some(gone) = reached.iter().find(|&&handle| table.address(handle) == 0) {
            return Err(format!("{} is gone, and the trace reaches it", self.name(*gone, table)));
        }
        let mut bytes = 0;
        for handle in &reached {
            // SAFETY: the precondition of `check`: nothing uses the heap, and addresses are those of objects.
            bytes += unsafe { self.compare(*handle, table)? };
        }
        // SAFETY: the precondition of `check`: nothing uses the heap, and addresses are those of objects.
        let (kept, kept_bytes) = unsafe { in_heap(table) };
        record.checked += 1;
        record.reached_objects += reached.len() as u64;
        record.reached_bytes += bytes;
        record.last_reached_bytes = bytes;
        record.beyond_objects += kept - reached.len() as u64;
        record.beyond_bytes += kept_bytes - bytes;
        Ok(())
    }

    /// Handles of all objects that can be reached from roots and from those whose last touch lies ahead.
    fn reach(&mut self, table: &Table) -> Vec<u32> {
        self.round += 1;
        let mut reached: Vec<u32> = table.handles().filter(|&handle| table.is_kept(handle)).collect();
        for handle in &reached {
            self.objects[*handle as usize].marked = self.round;
        }
        let mut at = 0;
        while at < reached.len() {
            for to in self.objects[reached[at] as usize].edges.values().copied().collect::<Vec<_>>() {
                let object = &mut self.objects[to as usize];
                if object.marked != self.round {
                    object.marked = self.round;
                    reached.push(to);
                }
            }
            at += 1;
        }
        reached
    }

    fn name(&self, handle: u32, table: &Table) -> String {
        let bytes = u64::from(table.entry(handle).words) * 8;
        format!("object {} of {bytes} bytes", self.objects[handle as usize].number)
    }

    /// Compares one object; gives its bytes in the heap.
    ///
    /// # Safety
    /// That of [`Model::check`].
    unsafe fn compare(&self, handle: u32, table: &Table) -> Result<u64, String> {
        let object = &self.objects[handle as usize];
        let entry = table.entry(handle);
        let name = self.name(handle, table);
        // SAFETY: the precondition of the function: addresses in the table are those of objects in the heap.
        let header = unsafe { Header::read(entry.address as *const u64) };
        if !header.is_of(object.number) || header.words != entry.words {
            return Err(format!("{name} is changed: its header is that of another"));
        }
        for word in 0..header.scanned {
            let expected = object.edges.get(&word).map_or(0, |&to| table.address(to));
            let at = entry.address + (header.own_words() as usize + word as usize) * WORD;
            // SAFETY: the word is one of the object's.
            let found = unsafe { (at as *const usize).read() };
            if found != expected {
                return Err(format!("{name} is changed: its word {word} leads elsewhere"));
            }
        }
        Ok(header.total_bytes() as u64)
    }
}

/// Objects in the heap and their bytes.
///
/// # Safety
/// That of [`Model::check`].
pub unsafe fn in_heap(table: &Table) -> (u64, u64) {
    let addresses = table.handles().map(|handle| table.address(handle)).chain(table.ended.iter().copied());
    addresses.fold((0, 0), |(objects, bytes), address| {
        // SAFETY: the precondition of the function: addresses in the table are those of objects in the heap.
        let header = unsafe { Header::read(address as *const u64) };
        (objects + 1, bytes + header.total_bytes() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two objects, the first a root whose word 1 leads to the second, in a heap of our own.
    struct Heap {
        memory: Box<[u64; 8]>,
        table: Table,
        model: Model,
    }

    impl Heap {
        fn new() -> Heap {
            let mut memory = Box::new([0; 8]);
            let (mut table, mut model) = (Table::new(2), Model::new(2));
            for (handle, words) in [(0, 2), (1, 1)] {
                let at = &raw mut memory[4 * handle as usize];
                // SAFETY: four words are enough for the header.
                unsafe { Header { words, scanned: words, number: u64::from(handle) }.write(at) };
                table.add(handle, at as usize, words);
                model.add(handle);
            }
            table.release(0);
            table.release(1);
            table.point();
            table.root(0);
            memory[2] = table.address(1) as u64;
            model.set(0, 1, Some(1));
            Heap { memory, table, model }
        }

        fn check(&mut self) -> Result<Collections, String> {
            let mut record = Collections::default();
            // SAFETY: the addresses are those of words in `memory` that hold headers.
            unsafe { self.model.check(&self.table, &mut record)? };
            Ok(record)
        }
    }

    #[test]
    fn a_heap_that_is_as_the_trace_has_it_passes_and_is_counted() {
        let record = Heap::new().check().unwrap();
        assert_eq!((record.reached_objects, record.reached_bytes), (2, 40));
        assert_eq!((record.beyond_objects, record.checked), (0, 1));
    }

    #[test]
    fn what_the_trace_does_not_reach_is_counted() {
        let mut heap = Heap::new();
        heap.model.set(0, 1, None);
        heap.memory[2] = 0;
        let record = heap.check().unwrap();
        assert_eq!((record.reached_objects, record.beyond_objects, record.beyond_bytes), (1, 1, 16));
    }

    #[test]
    fn an_object_that_is_gone_is_found() {
        let mut heap = Heap::new();
        heap.table.move_or_forget(|_| 0);
        assert!(heap.check().unwrap_err().contains("object 1 of 8 bytes is gone"));
    }

    #[test]
    fn a_header_of_another_object_is_found() {
        let mut heap = Heap::new();
        heap.memory[4] = heap.memory[0];
        assert!(heap.check().unwrap_err().contains("header"));
    }

    #[test]
    fn a_word_that_leads_elsewhere_is_found() {
        for (word, value) in [(2, 0), (1, 8)] {
            let mut heap = Heap::new();
            heap.memory[word] = value;
            assert!(heap.check().unwrap_err().contains("leads elsewhere"), "{word}");
        }
    }
}
