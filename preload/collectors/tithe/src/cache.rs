//! A thread's cache: free blocks of each class in a list through their first words, newest first.
//!
//! The collector reads the lists of stopped threads. Therefore a list is consistent at every instruction: a block is
//! linked before the head points to it, and the head advances before the block is returned. Blocks that a thread has
//! reserved and not linked yet are in `pending`.

use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use heaptoll_assertions::{assert_expensive, assert_internal};

use crate::class::{CACHE_LIMITS, SPAN_CLASSES};
use crate::span::UnitIndex;

/// Words of reserved blocks that a thread may have pending.
pub const PENDING_MAX: usize = 16;

/// A free block in a cache.
#[repr(C)]
pub struct FreeBlock {
    pub next: *mut FreeBlock,
    /// The heap's key, where the program freed the block: a double free is detected by it.
    pub key: u64,
}

/// The blocks of one span class.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct List {
    pub head: *mut FreeBlock,
    /// How many more blocks may be pushed. 0 in the empty cache, so that every free there takes the slow path.
    pub free_slots: u32,
    _reserved: u32,
}

impl List {
    /// Takes the newest block; null if there is none. By a pointer, since the lists of the static empty cache, which have
    /// none, are only read.
    ///
    /// # Safety
    /// The list is readable, and writable where it has a block; no other thread changes it.
    #[inline(always)]
    pub unsafe fn pop(list: *mut List) -> *mut FreeBlock {
        // SAFETY: this function's contract; blocks in a list are free and of at least 16 bytes.
        unsafe {
            let head = (*list).head;
            assert_internal!((head as usize).is_multiple_of(16), "blocks in a list are aligned");
            if !head.is_null() {
                (*list).head = (*head).next;
                (*list).free_slots = (*list).free_slots.wrapping_add(1);
                // The block's new owner must not keep the next one alive by this link.
                (*head).next = ptr::null_mut();
                (*head).key = 0;
            }
            head
        }
    }

    /// Pushes a block.
    ///
    /// # Safety
    /// The list is writable and has a free slot; no other thread changes it. The block is of its span class, free, and in
    /// no list.
    #[inline(always)]
    pub unsafe fn push(list: *mut List, block: *mut FreeBlock, key: u64) {
        assert_internal!(
            (block as usize).is_multiple_of(16) && !block.is_null(),
            "blocks in a list are aligned"
        );
        // SAFETY: this function's contract; blocks have at least 16 bytes.
        unsafe {
            assert_internal!((*list).head != block, "a block is in a list once");
            (*block).next = (*list).head;
            (*block).key = key;
            compiler_fence(Ordering::SeqCst);
            (*list).head = block;
            (*list).free_slots = (*list).free_slots.wrapping_sub(1);
        }
    }
}

/// Blocks reserved from one word of a span's bits.
#[derive(Debug, Clone, Copy)]
pub struct ReservedBlocks {
    pub unit: UnitIndex,
    pub word: u32,
    /// The blocks read as zeros.
    pub clean: bool,
    pub mask: u64,
}

/// A thread's cache.
#[repr(C, align(64))]
pub struct Cache {
    pub lists: [List; SPAN_CLASSES],
    pub pending: [ReservedBlocks; PENDING_MAX],
    pub pending_count: usize,
    /// Links of the list of all caches, and of the list of those without a thread.
    pub next: *mut Cache,
    pub next_idle: *mut Cache,
    /// The thread it belongs to, as the kernel numbers it; 0 or less for none.
    pub thread: i32,
}

impl Cache {
    /// The cache of a thread that has never allocated: it holds no blocks and accepts none.
    pub const fn empty() -> Cache {
        Cache {
            lists: [List { head: ptr::null_mut(), free_slots: 0, _reserved: 0 }; SPAN_CLASSES],
            pending: [ReservedBlocks { unit: 0, word: 0, clean: false, mask: 0 }; PENDING_MAX],
            pending_count: 0,
            next: ptr::null_mut(),
            next_idle: ptr::null_mut(),
            thread: 0,
        }
    }

    /// Initialises a cache in zeroed memory.
    pub fn open(&mut self) {
        for (list, limits) in self.lists.iter_mut().zip(&CACHE_LIMITS) {
            list.free_slots = u32::from(limits.capacity);
        }
    }

    /// Whether it belongs to a thread.
    #[inline(always)]
    pub fn has_thread(&self) -> bool {
        self.thread > 0
    }

    /// Takes the newest block of a list.
    #[inline(always)]
    pub fn pop(&mut self, span_class: usize) -> *mut FreeBlock {
        // SAFETY: the list is this cache's, which `&mut self` borrows.
        let head = unsafe { List::pop(&mut self.lists[span_class]) };
        assert_internal!(
            self.lists[span_class].free_slots <= u32::from(CACHE_LIMITS[span_class].capacity),
            "a list's free slots do not exceed its capacity"
        );
        assert_expensive!(self.is_counted(span_class), "a list has as many blocks as it counts");
        assert_internal!(
            !self.lists[span_class].head.is_null() || self.length(span_class) == 0,
            "a list without a block counts none"
        );
        head
    }

    /// Pushes a block onto a list that has a free slot.
    ///
    /// # Safety
    /// The block is of this span class, free, and in no list.
    #[inline(always)]
    pub unsafe fn push(&mut self, span_class: usize, block: *mut FreeBlock, key: u64) {
        assert_internal!(
            self.lists[span_class].free_slots > 0,
            "a list holds no more blocks than its capacity"
        );
        assert_expensive!(!self.holds(span_class, block), "a block is in a list once");
        // SAFETY: the block is free and in no list (this function's contract); the list is this cache's.
        unsafe { List::push(&mut self.lists[span_class], block, key) };
    }

    /// The blocks of a list, newest first.
    pub fn blocks(&self, span_class: usize) -> impl Iterator<Item = *mut FreeBlock> {
        let head = self.lists[span_class].head;
        // SAFETY: blocks in a list are free and linked.
        core::iter::successors(Some(head), |&block| (!block.is_null()).then(|| unsafe { (*block).next }))
            .take_while(|block| !block.is_null())
    }

    /// Whether a block is in a list.
    fn holds(&self, span_class: usize, block: *mut FreeBlock) -> bool {
        self.blocks(span_class).any(|listed| ptr::eq(listed, block))
    }

    /// Whether a list has as many blocks as it counts.
    pub fn is_counted(&self, span_class: usize) -> bool {
        let length = self.length(span_class) as usize;
        self.blocks(span_class).take(length + 1).count() == length
    }

    /// How many blocks are reserved and not linked yet.
    pub fn reserved_blocks(&self) -> u32 {
        self.pending[..self.pending_count].iter().map(|reserved| reserved.mask.count_ones()).sum()
    }

    /// Whether it holds no blocks.
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.head.is_null())
    }

    /// How many blocks a list has.
    pub fn length(&self, span_class: usize) -> u32 {
        u32::from(CACHE_LIMITS[span_class].capacity).wrapping_sub(self.lists[span_class].free_slots)
    }
}

// SAFETY: the only statics of this type, `EMPTY` and `GONE` in `process.rs`, are never written.
unsafe impl Sync for Cache {}
