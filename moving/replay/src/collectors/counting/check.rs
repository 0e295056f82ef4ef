//! Proof of the heap's structure: counts are right, the zero count table has what has no references, and free lists
//! have the cells that no object is in.

use std::collections::{HashMap, HashSet};

use heaptoll_wheel::class::CLASSES;

use super::{CellWord, Counting};
use crate::collectors::damage::Damage;
use crate::collectors::object;
use crate::collectors::pause::Sound;
use crate::header::WORD;

impl Sound for Counting {
    fn check(&self) -> Result<(), Damage> {
        // SAFETY: these are cells of the heap.
        self.cells.check(|cell| unsafe { CellWord::at(cell).is_used() })?;
        let objects: HashSet<usize> = self.objects().collect();
        let table = &self.world.table;
        let mut known =
            table.handles().map(|handle| table.address(handle)).chain(table.ended.iter().copied());
        Damage::unless(
            known.all(|object| objects.contains(&object)),
            "the table leads to objects of the heap",
        )?;
        self.check_counts(&objects)?;
        self.check_zero_count(&objects)?;
        self.check_free()
    }
}

impl Counting {
    fn check_counts(&self, objects: &HashSet<usize>) -> Result<(), Damage> {
        let mut counts: HashMap<usize, u32> = HashMap::new();
        for &object in objects {
            // SAFETY: it is that of an object.
            unsafe { object::references(object) }.for_each(|to| *counts.entry(to).or_default() += 1);
        }
        let leads = counts.keys().all(|to| objects.contains(to));
        Damage::unless(leads, "every reference leads to an object of the heap")?;
        let right = |&object: &usize| {
            // SAFETY: it is that of an object.
            counts.get(&object).copied().unwrap_or(0) == unsafe { Counting::word(object).count() }
        };
        Damage::unless(objects.iter().all(right), "a count is the number of words that lead to the object")
    }

    fn check_zero_count(&self, objects: &HashSet<usize>) -> Result<(), Damage> {
        let noted: HashSet<usize> = self.zero_count.iter().copied().collect();
        Damage::unless(noted.len() == self.zero_count.len(), "the zero count table has an object once")?;
        let right = |&object: &usize| {
            let word = Counting::word(object);
            // SAFETY: it is that of an object.
            unsafe { word.is_noted() == noted.contains(&object) && (word.count() > 0 || word.is_noted()) }
        };
        Damage::unless(objects.iter().all(right), "what has no references is in the zero count table")?;
        Damage::unless(noted.is_subset(objects), "the zero count table leads to objects of the heap")?;
        // SAFETY: these are objects.
        let marked = |&object: &usize| unsafe {
            Counting::word(object).is_marked() || Counting::word(object).is_dead()
        };
        Damage::unless(!objects.iter().any(marked), "no mark outlasts a collection")?;
        let bytes = self.zero_count.len() * WORD;
        Damage::unless(bytes == self.cells.table_bytes, "the zero count table is a part of the heap")
    }

    fn check_free(&self) -> Result<(), Damage> {
        let mut free = HashSet::new();
        for class in 0..CLASSES {
            let mut at = self.free[class];
            while at != 0 {
                let right = self.cells.is_cell(at) && self.cells.class_of(at) == Some(class);
                Damage::unless(right, "free lists have cells of their class")?;
                Damage::unless(free.insert(at), "a free cell is in a list once")?;
                // SAFETY: it is a cell of the heap.
                at = unsafe { CellWord::at(at).next_free() };
            }
        }
        let mut cells = self.cells.blocks().flat_map(|block| block.cells());
        // SAFETY: these are cells of the heap.
        let right = cells.all(|cell| unsafe { CellWord::at(cell).is_used() } != free.contains(&cell));
        Damage::unless(right, "a cell is in use or in its free list")
    }
}
