//! Proof of the heap's structure: wheels are whole, colours are those of the segments, and nothing black leads to
//! anything ecru.

use std::collections::HashMap;

use heaptoll_wheel::{SEGMENTS, Segment};

use super::{Bytes, LARGE, Treadmill};
use crate::collectors::damage::Damage;
use crate::collectors::object;
use crate::collectors::pause::Sound;
use crate::header::WORD;

impl Sound for Treadmill {
    fn check(&self) -> Result<(), Damage> {
        self.cells.check_pages()?;
        let segments = self.segments()?;
        let is_used = |object: usize| segments.get(&(object - WORD)).is_some_and(|&in_| in_ != Segment::Free);
        let table = &self.world.table;
        let mut known =
            table.handles().map(|handle| table.address(handle)).chain(table.ended.iter().copied());
        Damage::unless(known.all(is_used), "the table leads to objects of the heap")?;
        for (&cell, &segment) in segments.iter().filter(|&(_, &segment)| segment != Segment::Free) {
            // SAFETY: cells that are not free hold objects.
            for to in unsafe { object::references(cell + WORD) } {
                Damage::unless(is_used(to), "every reference leads to an object of the heap")?;
                let right = segment != Segment::Black || segments[&(to - WORD)] != Segment::Ecru;
                Damage::unless(right, "nothing black leads to anything ecru")?;
            }
        }
        Ok(())
    }
}

impl Treadmill {
    /// The segment of each cell.
    fn segments(&self) -> Result<HashMap<usize, Segment>, Damage> {
        let (mut segments, mut bytes) = (HashMap::new(), Bytes::default());
        let cells: usize = self.cells.blocks().map(|block| block.count).sum();
        for (number, wheel) in self.wheels.iter().enumerate() {
            let whole = wheel.is_whole(self.links, cells, |cell| self.cells.is_cell(cell));
            Damage::unless(whole, "a wheel leads through its segments and back")?;
            for segment in SEGMENTS {
                for cell in wheel.cells(self.links, segment) {
                    let right = self.cells.is_cell(cell) && self.wheel(cell).0 == number;
                    Damage::unless(right, "a wheel has cells of its class")?;
                    segments.insert(cell, segment);
                    *bytes.of(segment) += self.cells.size_of(cell);
                    self.check_colour(cell, segment)?;
                }
            }
        }
        Damage::unless(segments.len() == cells, "every cell is in a wheel")?;
        Damage::unless(bytes == self.bytes, "bytes of segments are counted")?;
        let nothing = self.wheels[LARGE].cells(self.links, Segment::Free).next().is_none();
        Damage::unless(nothing, "no large object is free")?;
        Ok(segments)
    }

    fn check_colour(&self, cell: usize, segment: Segment) -> Result<(), Damage> {
        // SAFETY: it is a cell of a wheel.
        let reached = unsafe { self.links.colour(cell) } == self.colour;
        match segment {
            Segment::Ecru => Damage::unless(self.marking && !reached, "what is ecru has the old colour"),
            Segment::Grey => Damage::unless(self.marking && reached, "what is grey has the new colour"),
            Segment::Black => Damage::unless(reached, "what is black has the new colour"),
            Segment::Free => Ok(()),
        }
    }
}

impl Bytes {
    fn of(&mut self, segment: Segment) -> &mut usize {
        match segment {
            Segment::Ecru => &mut self.ecru,
            Segment::Grey => &mut self.grey,
            Segment::Black => &mut self.black,
            Segment::Free => &mut self.free,
        }
    }
}
