//! `realloc`: in place where the block suffices, else a new block, a copy, and what the layer does with the old one.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::{arena, forward};
use heaptoll_runtime::{Reason, single_threaded};

use crate::calls::{
    LARGEST, admit, allocate, bump, count, count_requested, free, out_of_memory, padded, pin,
};
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
    count_requested(size, single_threaded);
    // SAFETY: `block` is live, which C requires of the caller of `realloc`.
    let mut resized = unsafe { resize(block, size) };
    if resized == Err(NotResized::NoMemory) {
        collection::collect(Reason::Pressure);
        // SAFETY: `block` is still live: a call that failed has left it as it was.
        resized = unsafe { resize(block, size) };
        if resized == Err(NotResized::NoMemory)
            && TABLES.used_pages().saturating_add(padded(size).div_ceil(4096) + 1) > LIMIT_PAGES.load(Relaxed)
        {
            REPORTER.refused();
        }
    }
    resized.unwrap_or_else(|_| out_of_memory())
}

/// Why a block is as it was.
#[derive(PartialEq)]
enum NotResized {
    NoMemory,
    /// It is no block of the program's, which is reported.
    NoBlock,
}

/// Resizes once.
///
/// # Safety
/// As C's `realloc`.
unsafe fn resize(block: *mut c_void, size: usize) -> Result<*mut c_void, NotResized> {
    let entry = enter();
    if entry == Entry::First {
        start::thread_begins();
    }
    // SAFETY: `block` is live, as this function requires; the thread is inside.
    let resized = unsafe { resize_inside(block, size, entry == Entry::Nested) };
    leave_from(entry);
    if LAYER.guards {
        // Freed bytes were added inside, where no pass is possible.
        count(0, single_threaded());
    }
    resized
}

/// Resizes. In the guard layer another thread may free the block meanwhile, which is a defect of the program: the block
/// waits then, and the manager must not resize it.
///
/// # Safety
/// As C's `realloc`, and the thread is inside.
unsafe fn resize_inside(block: *mut c_void, size: usize, nested: bool) -> Result<*mut c_void, NotResized> {
    let bytes = padded(size);
    let address = block as usize;
    let known = if arena::owns(block) {
        // SAFETY: `arena::owns` has shown that the block is the arena's, and it is live, as this function requires.
        Some(unsafe { arena::usable_size(block) } + 1)
    } else {
        TABLES.bytes_of(address)
    };
    if nested || !LAYER.guards && known.is_none() || HONOUR.load(Relaxed) && !arena::owns(block) {
        // SAFETY: `block` is live and the thread is inside, as this function requires.
        return not_null(unsafe { resize_by_manager(block, bytes, known, nested) });
    }
    let Some(known) = known else { return no_block(address) };
    if !arena::owns(block) {
        if bytes <= known && bytes > known / 2 {
            return Ok(block);
        }
        // SAFETY: the arena does not own the block, so it is the manager's; it is live, as this function requires.
        if bytes > known && unsafe { forward::usable_size(block) } >= bytes {
            if TABLES.remove(address).is_none() && LAYER.guards {
                return no_block(address);
            }
            if TABLES.insert(address, bytes).is_ok() {
                return Ok(block);
            }
            let _ = TABLES.insert(address, known);
        }
    }
    let new = not_null(admit(bytes, &forward::malloc))?;
    // SAFETY: two blocks; the old one has `known` bytes, the last of them the layer's own.
    unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), size.min(known - 1)) };
    let pinned = pinned::remove(address);
    if LAYER.guards && !arena::owns(block) {
        SINCE.fetch_add(freed::take(block), Relaxed);
    } else if pinned {
        TABLES.remove(address);
        // SAFETY: the manager's block, which the program no longer uses.
        unsafe { forward::free(block) };
    }
    Ok(new)
}

fn not_null(block: *mut c_void) -> Result<*mut c_void, NotResized> {
    if block.is_null() { Err(NotResized::NoMemory) } else { Ok(block) }
}

fn no_block(address: usize) -> Result<*mut c_void, NotResized> {
    freed::report_wrong(address, "resized after it was freed", "resized");
    Err(NotResized::NoBlock)
}

/// Lets the manager resize.
///
/// # Safety
/// As [`resize_inside`].
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
