//! `realloc`: in place where the block suffices, else a new block, a copy, and what the layer does with the old one.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::{arena, forward};
use heaptoll_runtime::{Reason, single_threaded};

use crate::calls::{LARGEST, admit, allocate, bump, count_requested, free, out_of_memory, padded, pin};
use crate::gate::{Entry, enter, leave_from};
use crate::shared::{HONOUR, LIMIT_PAGES, REPORTER, SINCE, TABLES};
use crate::{LAYER, collection, freed, pinned, start};

/// # Safety
/// As C's `realloc`.
unsafe fn realloc_block(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return allocate(size, false, forward::malloc);
    }
    let single_threaded = single_threaded();
    let slot = REPORTER.slot();
    bump(&slot.realloc_calls, 1, single_threaded);
    if size == 0 {
        bump(&slot.realloc_calls, u64::MAX, single_threaded);
        // SAFETY: `block` is live, which C requires of the caller of `realloc`.
        unsafe { free(block, false) };
        return ptr::null_mut();
    }
    if size > LARGEST {
        return out_of_memory();
    }
    bump(&slot.requested_bytes, size as u64, single_threaded);
    if LAYER.guards && !arena::owns(block) && TABLES.bytes_of(block as usize).is_none() {
        freed::report_wrong(block as usize, "resized after it was freed", "resized");
        return out_of_memory();
    }
    count_requested(size, single_threaded);
    let entry = enter();
    if entry == Entry::First {
        start::thread_begins();
    }
    // SAFETY: `block` is live, which C requires of the caller of `realloc`; the thread is inside.
    let mut new = unsafe { resize(block, size, entry == Entry::Nested) };
    leave_from(entry);
    if new.is_null() {
        collection::collect(Reason::Pressure);
        let entry = enter();
        // SAFETY: `block` is still live: a call that failed has left it as it was.
        new = unsafe { resize(block, size, entry == Entry::Nested) };
        leave_from(entry);
        if new.is_null() {
            if TABLES.used_pages().saturating_add(padded(size).div_ceil(4096) + 1) > LIMIT_PAGES.load(Relaxed)
            {
                REPORTER.refused();
            }
            return out_of_memory();
        }
    }
    new
}

/// Resizes, inside. Null: the block is as it was.
///
/// # Safety
/// As C's `realloc`, and the thread is inside.
unsafe fn resize(block: *mut c_void, size: usize, nested: bool) -> *mut c_void {
    let bytes = padded(size);
    let address = block as usize;
    let known = if arena::owns(block) {
        // SAFETY: `arena::owns` has shown that the block is the arena's, and it is live, as this function requires.
        Some(unsafe { arena::usable_size(block) } + 1)
    } else {
        TABLES.bytes_of(address)
    };
    if known.is_none() || nested || HONOUR.load(Relaxed) && !arena::owns(block) {
        // SAFETY: `block` is live and the thread is inside, as this function requires.
        return unsafe { resize_by_manager(block, bytes, known, nested) };
    }
    let known = known.unwrap_or(0);
    if !arena::owns(block) {
        if bytes <= known && bytes > known / 2 {
            return block;
        }
        // SAFETY: the arena does not own the block, so it is the manager's; it is live, as this function requires.
        if bytes > known && unsafe { forward::usable_size(block) } >= bytes {
            TABLES.remove(address);
            if TABLES.insert(address, bytes).is_ok() {
                return block;
            }
            let _ = TABLES.insert(address, known);
        }
    }
    let new = admit(bytes, &forward::malloc);
    if !new.is_null() {
        // SAFETY: two blocks, the old one of `known` bytes of which the last is the layer's own.
        unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), size.min(known - 1)) };
        let pinned = pinned::remove(address);
        if LAYER.guards && !arena::owns(block) {
            SINCE.fetch_add(freed::take(block), Relaxed);
        } else if pinned {
            TABLES.remove(address);
            // SAFETY: the manager's block, which the program no longer uses.
            unsafe { forward::free(block) };
        }
    }
    new
}

/// Lets the manager resize.
///
/// # Safety
/// As [`resize`].
#[inline(never)]
unsafe fn resize_by_manager(
    block: *mut c_void,
    bytes: usize,
    known: Option<usize>,
    nested: bool,
) -> *mut c_void {
    let address = block as usize;
    let was_pinned = pinned::remove(address);
    TABLES.remove(address);
    // SAFETY: `block` is live, as this function requires.
    let new = unsafe { forward::realloc(block, bytes) };
    let (now, now_bytes) = if new.is_null() { (address, known) } else { (new as usize, Some(bytes)) };
    if let Some(now_bytes) = now_bytes {
        if nested || was_pinned {
            pin(now as *mut c_void, now_bytes);
        } else {
            let _ = TABLES.insert(now, now_bytes);
        }
    }
    new
}

/// # Safety
/// As C's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `block` is null or live, which C requires of the caller.
    unsafe { realloc_block(block, size) }
}

/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return out_of_memory() };
    // SAFETY: `block` is null or live, which glibc requires of the caller.
    unsafe { realloc_block(block, bytes) }
}
