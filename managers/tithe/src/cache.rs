//! A thread's cache: free blocks of each class in a list through their first words, newest first.
//!
//! The collector reads the lists of stopped threads. Therefore a list is whole at every instruction: a block is
//! linked before the head leads to it, and the head moves on before the block is handed out. What a thread has
//! claimed and not linked yet stands in `pending`.

use core::ptr;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::class::{KINDS, TRAFFIC};
use crate::heap::Heap;
use crate::span::UnitIndex;

/// Words of claims that a thread may have in hand.
pub const CLAIMS: usize = 16;

/// A free block in a cache.
#[repr(C)]
pub struct FreeBlock {
    pub next: *mut FreeBlock,
    /// The heap's key, where the program gave the block back: what a double free is noticed by.
    pub key: u64,
}

/// The blocks of one kind.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct List {
    pub head: *mut FreeBlock,
    /// How many more may come. 0 in the empty cache, so that every free there takes the slow way.
    pub room: u32,
    _reserved: u32,
}

/// Blocks taken from one word of a span.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    pub unit: UnitIndex,
    pub word: u32,
    /// The blocks read as zeros.
    pub clean: bool,
    pub mask: u64,
}

/// A thread's cache.
#[repr(C, align(64))]
pub struct Cache {
    pub lists: [List; KINDS],
    pub pending: [Claim; CLAIMS],
    pub claims: usize,
    /// All caches, and those without a thread.
    pub next: *mut Cache,
    pub next_idle: *mut Cache,
    /// The heap it belongs to.
    pub heap: *const Heap,
    /// The thread it belongs to, as the kernel numbers it; 0 for none.
    pub thread: i32,
}

impl Cache {
    /// What a thread has that never allocated: nothing in it, no room.
    pub const fn empty() -> Cache {
        Cache {
            lists: [List { head: ptr::null_mut(), room: 0, _reserved: 0 }; KINDS],
            pending: [Claim { unit: 0, word: 0, clean: false, mask: 0 }; CLAIMS],
            claims: 0,
            next: ptr::null_mut(),
            next_idle: ptr::null_mut(),
            heap: ptr::null(),
            thread: 0,
        }
    }

    /// Makes zeroed memory a cache.
    pub fn open(&mut self) {
        for (list, traffic) in self.lists.iter_mut().zip(&TRAFFIC) {
            list.room = u32::from(traffic.room);
        }
    }

    /// Takes the newest block of a list.
    #[inline(always)]
    pub fn pop(&mut self, kind: usize) -> *mut FreeBlock {
        let list = &mut self.lists[kind];
        let head = list.head;
        if !head.is_null() {
            // SAFETY: blocks in a list are free and of at least 16 bytes.
            unsafe {
                list.head = (*head).next;
                // Who gets the block must not keep the next one alive by it.
                (*head).next = ptr::null_mut();
                (*head).key = 0;
            }
            list.room += 1;
        }
        head
    }

    /// Puts a block in front of a list that has room.
    ///
    /// # Safety
    /// The block is of this kind and nobody's.
    #[inline(always)]
    pub unsafe fn push(&mut self, kind: usize, block: *mut FreeBlock, key: u64) {
        let list = &mut self.lists[kind];
        // SAFETY: the caller's word.
        unsafe {
            (*block).next = list.head;
            (*block).key = key;
        }
        compiler_fence(Ordering::SeqCst);
        list.head = block;
        list.room = list.room.wrapping_sub(1);
    }

    /// How many blocks a list has.
    pub fn length(&self, kind: usize) -> u32 {
        u32::from(TRAFFIC[kind].room).wrapping_sub(self.lists[kind].room)
    }
}

// SAFETY: the empty cache, the one static, is never written.
unsafe impl Sync for Cache {}
