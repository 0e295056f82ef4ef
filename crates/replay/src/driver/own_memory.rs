//! The driver's allocator: mappings of its own, so that malloc serves the trace alone. A driver allocates little, and
//! nothing while calls are measured, so small blocks are never used again and large ones are mappings.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::Mutex;

use super::area::Area;

/// Blocks from here on are mappings.
const LARGE: usize = 32 << 10;
/// Small blocks are cut from mappings of this size.
const CHUNK: usize = 1 << 20;

/// See the file.
pub struct OwnMemory {
    /// The rest of the present chunk: next byte and end.
    rest: Mutex<(usize, usize)>,
}

impl OwnMemory {
    /// Nothing yet.
    pub const fn new() -> OwnMemory {
        OwnMemory { rest: Mutex::new((0, 0)) }
    }
}

// SAFETY: blocks are cut from mappings, disjoint, aligned as the layout requires, and mapped until they are
// deallocated.
unsafe impl GlobalAlloc for OwnMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        if size + align > LARGE {
            return match Area::new(size, size) {
                Ok(area) if align <= 4096 => area.start(),
                _ => ptr::null_mut(),
            };
        }
        let Ok(mut rest) = self.rest.lock() else { return ptr::null_mut() };
        let mut block = rest.0.next_multiple_of(align);
        if block + size > rest.1 {
            let Ok(chunk) = Area::new(CHUNK, CHUNK) else { return ptr::null_mut() };
            *rest = (chunk.start() as usize, chunk.start() as usize + CHUNK);
            block = rest.0.next_multiple_of(align);
        }
        rest.0 = block + size;
        ptr::with_exposed_provenance_mut(block)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() + layout.align() > LARGE {
            let page = super::area::page();
            let bytes = layout.size().next_multiple_of(page);
            // SAFETY: the mapping that `alloc` made for a block of this layout, with its guards.
            unsafe { libc::munmap(block.sub(page).cast(), bytes + 2 * page) };
        }
    }
}
