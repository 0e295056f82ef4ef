//! Walking and checking a heap: wheels are whole, segments and colours agree, pages are counted.

use heaptoll_runtime::{Damage, Piece, WORD};
use heaptoll_wheel::{SEGMENTS, Segment};

use crate::treadmill::Treadmill;
use crate::treadmill::blocks::{OWN_PAGES, WHEELS, is_large};
use crate::treadmill::pages::{Page, Use};

impl Treadmill {
    /// Shows the pieces of a sound heap.
    pub(crate) fn walk_pieces(&self, visit: &mut dyn FnMut(Piece)) {
        for (run, page) in self.pages.runs() {
            let (start, end) = (self.pages.address(run), self.pages.address(run + page.count as usize));
            match page.is {
                Use::Free => visit(Piece::free(start, end - start, 0)),
                Use::Own => visit(Piece::metadata(start, end - start)),
                Use::Cells if is_large(page.wheel.into()) => self.walk_large(run, end - start, visit),
                Use::Cells => self.walk_block(run, end, visit),
            }
        }
    }

    fn walk_large(&self, run: usize, bytes: usize, visit: &mut dyn FnMut(Piece)) {
        let start = self.pages.address(run);
        for cell in self.pages.cells(run) {
            visit(Piece::live(start, bytes, cell.object(), cell.object() - start + WORD));
        }
    }

    fn walk_block(&self, run: usize, end: usize, visit: &mut dyn FnMut(Piece)) {
        let mut at = self.pages.address(run);
        for cell in self.pages.cells(run) {
            if cell.address > at {
                visit(Piece::unused(at, cell.address - at));
            }
            // SAFETY: it is a cell of the heap.
            visit(match unsafe { self.is_used(cell) } {
                true => Piece::live(cell.address, cell.size, cell.object(), WORD),
                false => Piece::free(cell.address, cell.size, WORD),
            });
            at = cell.address + cell.size;
        }
        if at < end {
            visit(Piece::unused(at, end - at));
        }
    }

    /// Proves every invariant, when no collection runs.
    pub(crate) fn check_all(&self) -> Result<(), Damage> {
        if self.pages.count() == 0 {
            return Ok(());
        }
        let mut cells = 0;
        for (run, page) in self.pages.runs() {
            self.check_run(run, page)?;
            if page.is == Use::Cells {
                cells += self.pages.cells(run).count();
            }
        }
        Damage::unless(self.pages.is_counted(), self.pages.address(0), "free pages are counted")?;
        let (mut linked, mut used) = (0, 0);
        for number in 0..WHEELS {
            let (in_wheel, in_objects) = self.check_wheel(number, cells)?;
            (linked, used) = (linked + in_wheel, used + in_objects);
        }
        Damage::unless(linked == cells, self.pages.address(0), "every cell is in a wheel")?;
        Damage::unless(used == self.used, self.pages.address(0), "bytes in objects are counted")
    }

    fn check_run(&self, run: usize, page: Page) -> Result<(), Damage> {
        let address = self.pages.address(run);
        Damage::unless(
            (page.is == Use::Own) == (run < OWN_PAGES),
            address,
            "the sentinels have the first pages",
        )?;
        let end = run + page.count as usize;
        Damage::unless(end <= self.pages.count(), address, "a run is of pages of the heap")?;
        if page.is == Use::Free {
            return Ok(());
        }
        let of_run = |number: usize| {
            let other = self.pages.page(number);
            (other.first as usize, other.wheel, other.is) == (run, page.wheel, page.is)
        };
        Damage::unless((run..end).all(of_run), address, "each page of a run leads to its first")
    }

    /// How many cells a wheel has, and bytes in its objects.
    fn check_wheel(&self, number: usize, cells: usize) -> Result<(usize, usize), Damage> {
        let (links, wheel) = (self.links(), self.wheel(number));
        let of_wheel = |address: usize| {
            let cell = self.pages.find(address + WORD);
            cell.is_some_and(|cell| cell.address == address && cell.wheel == number)
        };
        let whole = wheel.is_whole(links, cells, of_wheel);
        Damage::unless(whole, self.pages.address(0), "a wheel leads through its segments and back")?;
        let (mut linked, mut used) = (0, 0);
        for segment in SEGMENTS {
            for cell in wheel.cells(links, segment).filter_map(|address| self.pages.find(address + WORD)) {
                linked += 1;
                let at_rest = matches!(segment, Segment::Black | Segment::Free);
                Damage::unless(at_rest, cell.address, "nothing is ecru or grey when no collection runs")?;
                // SAFETY: it is a cell of the heap.
                let is_used = unsafe { self.is_used(cell) };
                match segment {
                    Segment::Black => Damage::unless(is_used, cell.address, "what is black has the colour")?,
                    _ => Damage::unless(
                        !is_used,
                        cell.address,
                        "what is free is parked or has the old colour",
                    )?,
                }
                used += if is_used { cell.size } else { 0 };
            }
        }
        let free = wheel.cells(links, Segment::Free).next();
        let no_large = !is_large(number) || free.is_none();
        Damage::unless(no_large, free.unwrap_or_default(), "no large object is free")?;
        Ok((linked, used))
    }
}
