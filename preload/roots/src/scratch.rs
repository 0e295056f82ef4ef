//! The working memory of a stop and of the search for roots: one thread at a time uses it.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut, Range};
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_assertions::assert_internal;

use crate::areas::Area;
use crate::buffer::Buffer;
use crate::kernel_held::HeldWords;
use crate::pages::PageBuffers;
use crate::registers::Registers;

/// Buffers that only the collecting thread uses.
pub struct ScratchBuffers {
    pub tids: Buffer<i32>,
    pub entries: Buffer<u8>,
    pub text: Buffer<u8>,
    pub areas: Buffer<Area>,
    /// Mappings without any access when the areas were gathered, as start and end.
    pub no_access: Buffer<(usize, usize)>,
    /// Start and end.
    pub left_out: Buffer<(usize, usize)>,
    pub page_buffers: PageBuffers,
    pub held: HeldWords,
    pub caller: Registers,
}

impl ScratchBuffers {
    /// The addresses that its buffers occupy.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        let lists = [self.tids.range(), self.entries.range(), self.text.range(), self.areas.range()];
        let lists = lists
            .into_iter()
            .chain([self.no_access.range(), self.left_out.range()])
            .chain(self.held.ranges());
        lists.chain(self.page_buffers.ranges())
    }
}

/// The buffers, free or in use.
pub struct Scratch {
    buffers: UnsafeCell<ScratchBuffers>,
    /// A thread uses the buffers.
    busy: AtomicBool,
}

// SAFETY: only the thread that has set `busy` uses the buffers.
unsafe impl Sync for Scratch {}

impl Scratch {
    pub const fn new() -> Scratch {
        Scratch {
            buffers: UnsafeCell::new(ScratchBuffers {
                tids: Buffer::new(),
                entries: Buffer::new(),
                text: Buffer::new(),
                areas: Buffer::new(),
                no_access: Buffer::new(),
                left_out: Buffer::new(),
                page_buffers: PageBuffers::new(),
                held: HeldWords::new(),
                caller: Registers::new(),
            }),
            busy: AtomicBool::new(false),
        }
    }

    /// The buffers, for the calling thread alone. `None`: a thread uses them already.
    pub fn take(&self) -> Option<ScratchGuard<'_>> {
        // Lazily: a guard that is dropped frees buffers which another thread uses.
        (!self.busy.swap(true, Ordering::Acquire)).then(|| ScratchGuard { scratch: self })
    }

    /// In the child of a fork: frees the buffers, which a thread that the child has not may have used.
    pub fn free(&self) {
        self.busy.store(false, Ordering::Release);
    }
}

/// The buffers are the holder's until this is dropped.
pub struct ScratchGuard<'a> {
    scratch: &'a Scratch,
}

impl Deref for ScratchGuard<'_> {
    type Target = ScratchBuffers;

    fn deref(&self) -> &ScratchBuffers {
        // SAFETY: `Scratch::take` has found that no other thread uses the buffers, and gives them to no other.
        unsafe { &*self.scratch.buffers.get() }
    }
}

impl DerefMut for ScratchGuard<'_> {
    fn deref_mut(&mut self) -> &mut ScratchBuffers {
        // SAFETY: `Scratch::take` has found that no other thread uses the buffers, and gives them to no other.
        unsafe { &mut *self.scratch.buffers.get() }
    }
}

impl Drop for ScratchGuard<'_> {
    fn drop(&mut self) {
        assert_internal!(
            self.scratch.busy.load(Ordering::Relaxed),
            "the buffers are in use until their one guard is dropped"
        );
        self.scratch.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_request_for_the_buffers_leaves_them_to_the_first() {
        let scratch = Scratch::new();
        let first = scratch.take().expect("they are free");
        assert!(scratch.take().is_none());
        drop(first);
        assert!(scratch.take().is_some());
    }
}
