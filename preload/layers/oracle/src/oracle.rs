//! What follows the recorded sequence: each allocation is compared, and objects are freed when they are due.

use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_layer_core::oracle::difference::{Difference, What};
use heaptoll_layer_core::oracle::pages::Pages;
use heaptoll_layer_core::oracle::pending::Pending;
use heaptoll_layer_core::oracle::reader::Reader;
use heaptoll_layer_core::oracle::schedule::Schedule;
use heaptoll_layer_core::oracle::sequence::Sequence;
use heaptoll_layer_core::oracle::settings::Point;
use heaptoll_next::forward;
use heaptoll_oracle_file::Section;
use heaptoll_runtime::thread_pointer;
use heaptoll_stats_page::{Slot, Writer, WriterKind};

use crate::file::Path;
use crate::loaded::Process;
use crate::stop::{stop_at, stop_because};

/// Writes the layer's statistics.
static WRITER: Writer = Writer::new(WriterKind::Layer, "oracle");

/// Finds the slot in which allocations are counted: as many as were recorded show that the sequence was followed to its
/// end.
pub fn attach() -> &'static Slot {
    WRITER.slot()
}

/// When objects are freed, with what is needed for it.
#[expect(clippy::large_enum_variant, reason = "there is one value, in a static; the layer has no heap")]
pub enum Reclaim {
    /// When the program frees them.
    Free,
    /// When the file states it: at their last use, or when they cannot be reached any more.
    Recorded(Schedule<'static, Path>),
    /// So many bytes after the program freed them.
    Delay(u64, Pending),
    /// When the bytes allocated reach the next multiple.
    Collect(u64, Pending),
    /// Not at all.
    Never,
}

impl Reclaim {
    /// Nothing has been allocated.
    pub fn new(point: Point, path: Path, schedule: Section, blocks: &'static [Cell<*mut c_void>]) -> Reclaim {
        match point {
            Point::Free | Point::Record => Reclaim::Free,
            Point::LastUse | Point::Unreachable => {
                Reclaim::Recorded(Schedule::new(Reader::new(path, schedule), blocks))
            }
            Point::Delay(bytes) => Reclaim::Delay(bytes, Pending::new()),
            Point::Collect(bytes) => Reclaim::Collect(bytes, Pending::new()),
            Point::Never | Point::Keep => Reclaim::Never,
        }
    }
}

/// What follows the sequence.
pub struct Oracle {
    /// The thread that allocates.
    pub thread: usize,
    /// The recorded allocations.
    pub sequence: Sequence<'static, Path, Process>,
    /// When objects are freed.
    pub reclaim: Reclaim,
    /// Where blocks are in a run that checks; otherwise they are the manager's.
    pub pages: Option<Pages>,
    /// Bytes requested so far, where frees are due by them.
    pub allocated: u64,
    /// Where allocations are counted.
    pub slot: &'static Slot,
    /// Whether an allocation frees nothing, and its block is the manager's.
    pub allocates_directly: bool,
    /// Whether the manager frees a block when the program does.
    pub frees_directly: bool,
}

#[cold]
fn refused() -> ! {
    stop_because("the manager refuses memory that it gave when the program was recorded")
}

/// Gives a block back.
///
/// # Safety
/// The block is one that `pages` or else the manager gave, and was not given back.
#[inline(always)]
unsafe fn reclaim(pages: &mut Option<Pages>, block: *mut c_void) {
    match pages {
        // SAFETY: by this function's contract the block is the manager's and live.
        None => unsafe { forward::free(block) },
        // SAFETY: by this function's contract the pages gave the block, and it was not retired.
        Some(pages) => unsafe { pages.retire(block) },
    }
}

impl Oracle {
    /// Compares an allocation that is no `realloc`, frees what is due, and gives the new block.
    #[inline(always)]
    pub fn allocate(
        &mut self,
        size: usize,
        align: usize,
        caller: usize,
        make: impl FnOnce() -> *mut c_void,
    ) -> *mut c_void {
        if self.thread != thread_pointer() || !self.sequence.advance(size as u64, caller) {
            return self.compare_and_allocate(size, align, caller, false, make).0;
        }
        self.slot.malloc_calls.store(self.sequence.count(), Relaxed);
        if !self.allocates_directly {
            return self.reclaim_and_allocate(size, align, caller, make);
        }
        let block = make();
        if block.is_null() {
            refused();
        }
        block
    }

    /// [`Oracle::allocate`], of a `realloc` too. The result's second part is the recorded size of the object that a `realloc`
    /// ends.
    #[inline(never)]
    pub fn compare_and_allocate(
        &mut self,
        size: usize,
        align: usize,
        caller: usize,
        resizes: bool,
        make: impl FnOnce() -> *mut c_void,
    ) -> (*mut c_void, u64) {
        if self.thread != thread_pointer() {
            stop_because("a second thread allocates, and the recorded sequence is one thread's");
        }
        let resized = match self.sequence.next(size as u64, caller, resizes) {
            Ok(resized) => resized.unwrap_or(0),
            Err(difference) => stop_at(difference, self.sequence.sites(), size, caller),
        };
        self.slot.malloc_calls.store(self.sequence.count(), Relaxed);
        (self.reclaim_and_allocate(size, align, caller, make), resized)
    }

    /// Frees what is due before an allocation that has been compared, makes it, and keeps what is freed later.
    #[inline(never)]
    fn reclaim_and_allocate(
        &mut self,
        size: usize,
        align: usize,
        caller: usize,
        make: impl FnOnce() -> *mut c_void,
    ) -> *mut c_void {
        let freed = self.reclaim_due();
        let block = match &mut self.pages {
            None => make(),
            Some(pages) => pages.allocate(size, align, self.sequence.count() - 1),
        };
        if block.is_null() {
            refused();
        }
        let kept = freed.and_then(|()| match &mut self.reclaim {
            Reclaim::Recorded(schedule) => schedule.keep(block),
            _ => Ok(()),
        });
        if let Err(what) = kept {
            let allocation = self.sequence.count() - 1;
            stop_at(Difference { allocation, what }, self.sequence.sites(), size, caller);
        }
        self.allocated += size as u64;
        block
    }

    #[inline(always)]
    fn reclaim_due(&mut self) -> Result<(), What> {
        let Oracle { pages, reclaim: when, allocated, .. } = self;
        match when {
            Reclaim::Free | Reclaim::Never => {}
            Reclaim::Recorded(schedule) => {
                schedule.before_allocation(|block| {
                    // SAFETY: the table contains a block once, until it is freed.
                    unsafe { reclaim(pages, block) }
                })?;
            }
            Reclaim::Delay(_, pending) | Reclaim::Collect(_, pending) => {
                while let Some(block) = pending.due(*allocated) {
                    // SAFETY: the queue contains a block once, until it is freed.
                    unsafe { reclaim(pages, block) };
                }
            }
        }
        Ok(())
    }

    /// The program frees an object.
    ///
    /// # Safety
    /// The block is live.
    #[inline(always)]
    pub unsafe fn free(&mut self, block: *mut c_void) {
        let Oracle { pages, reclaim: when, allocated, .. } = self;
        let added = match when {
            // SAFETY: by this function's contract the block is live.
            Reclaim::Free => return unsafe { reclaim(pages, block) },
            Reclaim::Recorded(_) | Reclaim::Never => return,
            Reclaim::Delay(bytes, pending) => pending.add(block, allocated.saturating_add(*bytes)),
            Reclaim::Collect(bytes, pending) => {
                pending.add(block, (*allocated / *bytes + 1).saturating_mul(*bytes))
            }
        };
        if added.is_err() {
            stop_because("it has no memory for its queue of freed blocks");
        }
    }
}
