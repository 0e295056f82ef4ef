//! Sends a Rust program to malloc under a feature, and to the allocator that it names without it.
//!
//! A program with a `#[global_allocator]` of its own calls no malloc, so another allocator cannot be preloaded. It keeps
//! its allocator and can be measured under any with
//!
//! ```
//! # use std::alloc::System as MiMalloc;
//! #[global_allocator]
//! static GLOBAL: heaptoll_alloc::Malloc<MiMalloc> = heaptoll_alloc::Malloc::new(MiMalloc);
//! ```
//!
//! and a build with the feature `malloc` (see README.md).
#![no_std]

mod c;

use core::alloc::{GlobalAlloc, Layout};

/// A global allocator: `A`, or malloc under the feature `malloc`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(transparent)]
pub struct Malloc<A>(A);

impl<A> Malloc<A> {
    /// The allocator that serves the program without the feature.
    pub const fn new(allocator: A) -> Malloc<A> {
        Malloc(allocator)
    }

    /// That allocator.
    pub const fn inner(&self) -> &A {
        &self.0
    }

    /// Whether this build calls malloc in its place.
    pub const fn calls_malloc(&self) -> bool {
        cfg!(feature = "malloc")
    }
}

#[cfg(not(feature = "malloc"))]
impl<A> Malloc<A> {
    #[inline(always)]
    fn serving(&self) -> &A {
        &self.0
    }
}

#[cfg(feature = "malloc")]
impl<A> Malloc<A> {
    #[inline(always)]
    fn serving(&self) -> &c::C {
        &c::C
    }
}

// SAFETY: every call is passed on unchanged to one allocator, the same one in all calls of a build, which keeps the
// contract of `GlobalAlloc`.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Malloc<A> {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the allocator.
        unsafe { self.serving().alloc(layout) }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; the block is from the same allocator.
        unsafe { self.serving().dealloc(block, layout) }
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { self.serving().alloc_zeroed(layout) }
    }

    #[inline(always)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`; the block is from the same allocator.
        unsafe { self.serving().realloc(block, layout, new_size) }
    }
}
