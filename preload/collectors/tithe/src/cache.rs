//! A thread's cache: of each class the blocks that it freed, in a list through their first words, newest first, and those
//! that it has reserved.
//!
//! The collector reads the lists of stopped threads. Therefore a list is consistent at every instruction: a block is
//! linked before the head points to it, and the head advances before the block is returned.

use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use heaptoll_assertions::{assert_expensive, assert_internal};

use crate::bump::{Bump, Reserved};
use crate::class::{CACHE_LIMITS, SPAN_CLASSES};
use crate::span::UnitIndex;

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

/// A thread's cache.
#[repr(C, align(64))]
pub struct Cache {
    pub lists: [List; SPAN_CLASSES],
    pub bumps: [Bump; SPAN_CLASSES],
    pub reservations: [Reserved; SPAN_CLASSES],
    /// Links of the list of all caches, and of the list of those without a thread.
    pub next: *mut Cache,
    pub next_idle: *mut Cache,
    /// Bytes that are counted as allocated before the cache reserves them.
    pub counted: usize,
    /// Bytes of blocks that wait and are not counted yet. Mode `guard`.
    pub waiting: usize,
    /// The thread it belongs to, as the kernel numbers it; 0 or less for none.
    pub thread: i32,
    /// The home of the spans that it reserves blocks of.
    pub home: u8,
}

impl Cache {
    /// The cache of a thread that has never allocated: it holds no blocks and accepts none.
    pub const fn empty() -> Cache {
        Cache {
            lists: [List { head: ptr::null_mut(), free_slots: 0, _reserved: 0 }; SPAN_CLASSES],
            bumps: [Bump::NONE; SPAN_CLASSES],
            reservations: [Reserved::NONE; SPAN_CLASSES],
            next: ptr::null_mut(),
            next_idle: ptr::null_mut(),
            counted: 0,
            waiting: 0,
            thread: 0,
            home: 0,
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

    /// Takes a block: the newest of a list, or the next reserved one. Null when there is none.
    #[inline(always)]
    pub fn take(&mut self, span_class: usize) -> *mut u8 {
        let block = self.pop(span_class);
        if !block.is_null() {
            return block.cast();
        }
        // SAFETY: the cursor and its reservation are this cache's, which `&mut self` borrows.
        unsafe {
            let block = Bump::take(&mut self.bumps[span_class]);
            if block.is_null() { Cache::take_next(self, span_class) } else { block }
        }
    }

    /// Takes the first of the next adjacent reserved blocks; null when there are none.
    ///
    /// # Safety
    /// The cache is readable, and writable where it has a block; no other thread changes it. There is such a span class.
    #[inline(always)]
    pub unsafe fn take_next(cache: *mut Cache, span_class: usize) -> *mut u8 {
        // SAFETY: this function's contract.
        unsafe {
            let reserved = (*cache).reservations.as_mut_ptr().add(span_class);
            Bump::next((*cache).bumps.as_mut_ptr().add(span_class), reserved)
        }
    }

    /// Removes a block, as [`Cache::take`], and leaves it as it is.
    pub fn remove(&mut self, span_class: usize) -> *mut u8 {
        let list = &mut self.lists[span_class];
        let block = list.head;
        if block.is_null() {
            return self.bumps[span_class].pass(&mut self.reservations[span_class]);
        }
        // SAFETY: a block in a list is free and linked.
        list.head = unsafe { (*block).next };
        list.free_slots = list.free_slots.wrapping_add(1);
        block.cast()
    }

    /// Reserves blocks of `size` bytes. The caller holds the lock of their span class.
    pub fn reserve(&mut self, span_class: usize, reserved: Reserved, size: u32) {
        assert_internal!(self.reserved(span_class) == 0, "what was reserved before is used up");
        self.reservations[span_class] = reserved;
        self.bumps[span_class] = Bump::before(&reserved, size);
    }

    /// How many reserved blocks of a span class were not handed out.
    fn reserved(&self, span_class: usize) -> u32 {
        self.reservations[span_class].free(&self.bumps[span_class]).iter().map(|mask| mask.count_ones()).sum()
    }

    /// Whether it has reserved a block, and not handed it out: the block's span, its number there, and its address.
    #[inline(always)]
    pub fn has_reserved(&self, span_class: usize, unit: UnitIndex, block: usize, address: usize) -> bool {
        let reserved = &self.reservations[span_class];
        reserved.unit == unit && reserved.holds(&self.bumps[span_class], block, address)
    }

    /// The reserved blocks that were not handed out: the first unit of their span, a word of its bits, and theirs in it.
    pub fn all_reserved(&self) -> impl Iterator<Item = (UnitIndex, usize, u64)> {
        self.reservations.iter().zip(&self.bumps).flat_map(|(reserved, bump)| {
            let masks = reserved.free(bump).into_iter().enumerate().filter(|&(_, mask)| mask != 0);
            masks.map(move |(word, mask)| (reserved.unit, usize::from(reserved.word) + word, mask))
        })
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
            !self.lists[span_class].head.is_null() || self.listed(span_class) == 0,
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
        let length = self.listed(span_class) as usize;
        self.blocks(span_class).take(length + 1).count() == length
    }

    /// Whether it holds no blocks.
    pub fn is_empty(&self) -> bool {
        (1..SPAN_CLASSES).all(|span_class| !self.has(span_class))
    }

    /// Whether it holds blocks of a span class.
    pub fn has(&self, span_class: usize) -> bool {
        !self.lists[span_class].head.is_null() || self.reserved(span_class) != 0
    }

    /// How many blocks of a span class it has.
    pub fn length(&self, span_class: usize) -> u32 {
        self.listed(span_class).wrapping_add(self.reserved(span_class))
    }

    /// How many of them are in the list.
    pub fn listed(&self, span_class: usize) -> u32 {
        u32::from(CACHE_LIMITS[span_class].capacity).wrapping_sub(self.lists[span_class].free_slots)
    }
}

// SAFETY: the only statics of this type, `EMPTY` and `GONE` in `process.rs`, are never written.
unsafe impl Sync for Cache {}
