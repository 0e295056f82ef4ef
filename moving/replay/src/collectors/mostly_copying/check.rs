//! Proof of the heap's structure: pages hold objects from end to end, which lead to objects.

use std::collections::HashSet;

use super::{FREE, MostlyCopying};
use crate::collectors::damage::Damage;
use crate::collectors::object;
use crate::collectors::pages::PAGE_BYTES;
use crate::collectors::pause::Sound;

impl Sound for MostlyCopying {
    fn check(&self) -> Result<(), Damage> {
        let objects = self.objects()?;
        let (mut numbers, mut total) = (HashSet::new(), 0);
        for &address in &objects {
            // SAFETY: it is that of an object, as the walk has found.
            let (number, mut references) =
                unsafe { (object::header(address).number, object::references(address)) };
            let leads = references.all(|to| objects.contains(&to));
            Damage::unless(leads, "every reference leads to an object of the heap")?;
            numbers.insert(number);
            total += 1;
        }
        // Numbers of which headers keep 28 bits are distinct in a replay of less than 2^28 objects.
        Damage::unless(numbers.len() == total, "an object is in the heap once")?;
        let table = &self.world.table;
        let mut known =
            table.handles().map(|handle| table.address(handle)).chain(table.ended.iter().copied());
        Damage::unless(
            known.all(|address| objects.contains(&address)),
            "the table leads to objects of the heap",
        )
    }
}

impl MostlyCopying {
    /// All objects.
    fn objects(&self) -> Result<HashSet<usize>, Damage> {
        let (mut objects, mut small, mut used) = (HashSet::new(), 0, 0);
        for (number, page) in self.map.iter().enumerate().filter(|(_, page)| page.space != FREE) {
            Damage::unless(self.pages.is_taken(number), "a page with a space is in use")?;
            used += 1;
            let (mut at, end) =
                (self.pages.address(number), self.pages.address(number) + page.filled as usize);
            if page.filled != 0 {
                Damage::unless(page.space == self.space, "pages in use are of the current space")?;
            }
            small += usize::from((1..=PAGE_BYTES as u32).contains(&page.filled));
            while at < end {
                objects.insert(at);
                // SAFETY: objects follow each other to where the page is filled, which is proved as the walk goes on.
                at += unsafe { object::header(at) }.total_bytes();
            }
            Damage::unless(at == end, "objects follow each other to where a page is filled")?;
        }
        Damage::unless((small, used) == (self.small, self.pages.used()), "pages are counted")?;
        Ok(objects)
    }
}
