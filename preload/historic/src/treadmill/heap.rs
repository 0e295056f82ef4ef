//! The contract of a heap.

use core::ffi::{CStr, c_int};
use core::ptr::{self, NonNull};

use heaptoll_assertions::assert_sound;
use heaptoll_runtime::{ALIGNMENT, Damage, Heap, Misuse, Piece, Reason, StatsReporter};

use crate::support::{limit_from, status};
use crate::treadmill::Treadmill;
use crate::treadmill::blocks::{Cell, SCANNED, is_large, wheel_for, wheel_for_aligned};

/// The variable of a heap's limit, bytes.
const LIMIT: &CStr = c"TREADMILL_HEAP";

impl Treadmill {
    /// An object of a wheel's kind for a request.
    #[inline(always)]
    fn object(&mut self, wheel: usize, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        if is_large(wheel) {
            return self.large(wheel, alignment, bytes);
        }
        if self.pages.count() == 0 {
            return self.refilled(wheel);
        }
        self.take(wheel).or_else(|| self.refilled(wheel))
    }

    /// The cell of a live block.
    fn cell_of(&self, block: NonNull<u8>) -> Result<Cell, Misuse> {
        let address = block.as_ptr() as usize;
        let cell = self.pages.find(address).ok_or(Misuse::Foreign)?;
        if cell.object() != address {
            return Err(Misuse::Damaged);
        }
        // SAFETY: `find` returned a cell of the heap.
        if unsafe { self.is_used(cell) } { Ok(cell) } else { Err(Misuse::DoubleFree) }
    }
}

impl Heap for Treadmill {
    const NAME: &'static str = "treadmill";
    const FREES: bool = false;
    const CLEARS: bool = true;

    heaptoll_runtime::region_of_heap!(pages.region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.object(wheel_for(bytes), ALIGNMENT, bytes)
    }

    fn allocate_pointer_free(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.object(SCANNED + wheel_for(bytes), ALIGNMENT, bytes)
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        self.object(wheel_for_aligned(alignment, bytes), alignment, bytes)
    }

    #[inline(always)]
    unsafe fn free(&mut self, _: NonNull<u8>) -> Result<(), Misuse> {
        Ok(())
    }

    unsafe fn resize(&mut self, block: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        let usable = self.cell_of(block)?.usable();
        if bytes > usable || bytes < usable / 2 {
            return Ok(false);
        }
        // What is no longer used must not keep anything alive.
        // SAFETY: the object is the caller's, as `Heap::resize` requires, and has `usable` bytes.
        unsafe { ptr::write_bytes(block.as_ptr().add(bytes), 0, usable - bytes) };
        Ok(true)
    }

    unsafe fn discard(&mut self, block: NonNull<u8>) -> Result<(), Misuse> {
        let cell = self.cell_of(block)?;
        let links = self.links();
        self.used -= cell.size;
        // SAFETY: the object is black, and the program no longer uses it.
        unsafe {
            if is_large(cell.wheel) {
                links.unlink(cell.address);
                self.pages.release(self.pages.number(cell.address));
            } else {
                self.wheel(cell.wheel).give_back(links, cell.address);
                links.park(cell.address);
            }
        }
        assert_sound!(self.check());
        Ok(())
    }

    unsafe fn usable(&self, block: NonNull<u8>) -> usize {
        self.cell_of(block).map_or(0, Cell::usable)
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        self.walk_pieces(visit);
    }

    fn check(&self) -> Result<(), Damage> {
        self.check_all()
    }

    fn start(&mut self, reporter: &'static StatsReporter) {
        self.pages.limit(limit_from(LIMIT));
        self.pages.region.report_to(reporter);
        self.reporter = Some(reporter);
        if let Some(mutators) = self.mutators {
            mutators.start();
        }
    }

    fn collect(&mut self) -> c_int {
        if self.mutators.is_none() {
            return libc::ENOTSUP;
        }
        status(self.collect_for(Reason::Requested))
    }

    fn after_fork_in_child(&mut self) {
        if let Some(mutators) = self.mutators {
            mutators.after_fork_in_child();
        }
    }
}
