//! The malloc family and C++'s operators: the next family's, with every block in the table.
//!
//! The layer requests at least one byte more for a block than the program, so that an address one past its end, which C
//! allows, still lies in it.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heaptoll_next::{arena, forward};
use heaptoll_runtime::{ADDRESSES, Reason, single_threaded};

use crate::freed::{self, FREED};
use crate::gate::{self, Entry, enter, leave, leave_from};
use crate::shared::{BUDGET, HONOUR, LAZY, LIMIT_PAGES, REPORTER, SINCE, TABLES};
use crate::{LAYER, collection, pinned, start};

/// No larger request can be met, whatever is collected.
pub const LARGEST: usize = ADDRESSES;
/// No block is smaller, bytes: blocks are this far apart.
const LEAST: usize = 16;
const WORD: usize = 8;
/// Blocks up to so many bytes are cleared where frees are ignored; of larger ones, which a program rarely leaves as
/// they are, what a manager's links take.
const CLEARED: usize = 8 << 10;
const LINKS: usize = 64;

fn set_errno(code: c_int) {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = code };
}

#[inline(always)]
pub fn bump(counter: &AtomicU64, by: u64, single_threaded: bool) {
    if single_threaded {
        counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
    } else {
        counter.fetch_add(by, Relaxed);
    }
}

#[cold]
#[inline(never)]
pub fn out_of_memory() -> *mut c_void {
    REPORTER.failed();
    set_errno(libc::ENOMEM);
    ptr::null_mut()
}

/// The bytes requested from the manager for a block of so many bytes.
#[inline(always)]
pub fn padded(size: usize) -> usize {
    ((size + WORD) & !(WORD - 1)).max(LEAST)
}

/// Counts a request, and collects if it is due. False: it can never be met.
#[inline(always)]
fn request(size: usize, operator: bool) -> bool {
    let single_threaded = single_threaded();
    let slot = REPORTER.slot();
    bump(&slot.malloc_calls, 1, single_threaded);
    if operator {
        bump(&slot.new_calls, 1, single_threaded);
    }
    if size > LARGEST {
        return false;
    }
    bump(&slot.requested_bytes, size as u64, single_threaded);
    count_requested(size, single_threaded);
    true
}

/// Counts what is requested where that makes a collection due.
#[inline(always)]
pub fn count_requested(size: usize, single_threaded: bool) {
    if !LAYER.guards {
        count(size, single_threaded);
    }
}

/// Counts bytes, and collects if that is due.
#[inline(always)]
pub fn count(size: usize, single_threaded: bool) {
    let since = if single_threaded {
        let since = SINCE.load(Relaxed).wrapping_add(size);
        SINCE.store(since, Relaxed);
        since
    } else {
        SINCE.fetch_add(size, Relaxed).wrapping_add(size)
    };
    if since > BUDGET.load(Relaxed) {
        due();
    }
}

/// The budget is used up.
#[cold]
#[inline(never)]
fn due() {
    if start::start() {
        collection::collect(Reason::Allocation);
    }
}

/// A new block of `size` bytes; `from_manager` is called with the padded size.
#[inline(always)]
pub fn allocate(size: usize, operator: bool, from_manager: impl Fn(usize) -> *mut c_void) -> *mut c_void {
    if !request(size, operator) {
        return out_of_memory();
    }
    let entry = enter();
    if entry != Entry::Entered {
        return allocate_otherwise(entry, size, from_manager);
    }
    let block = admit(padded(size), &from_manager);
    leave();
    if block.is_null() { retry(size, from_manager) } else { block }
}

/// Allocates a block and inserts it into the table; null: there was none, or the heap has reached its limit. The thread
/// is inside.
#[inline(always)]
pub fn admit(bytes: usize, from_manager: &impl Fn(usize) -> *mut c_void) -> *mut c_void {
    if LAZY.load(Relaxed) {
        collection::free_some();
    }
    let block = from_manager(bytes);
    if block.is_null() || arena::owns(block) {
        return block;
    }
    if !HONOUR.load(Relaxed) {
        // What the block held before, and the manager's own links in it, are addresses of blocks that they would keep
        // alive where the program leaves them as they are: most of what SQLite kept over glibc.
        // Under guard nothing but links is left in freed blocks.
        let cleared = if bytes <= CLEARED && !LAYER.guards { bytes } else { LINKS.min(bytes) };
        // SAFETY: the block has so many bytes, and no other code has its address.
        unsafe { ptr::write_bytes(block.cast::<u8>(), 0, cleared) };
    }
    if TABLES.insert(block as usize, bytes).is_err() {
        // SAFETY: a block of the manager's, and no other code has its address.
        unsafe { forward::free(block) };
        return ptr::null_mut();
    }
    if TABLES.used_pages() > LIMIT_PAGES.load(Relaxed) {
        TABLES.remove(block as usize);
        // SAFETY: a block of the manager's, and no other code has its address.
        unsafe { forward::free(block) };
        return ptr::null_mut();
    }
    block
}

/// A new thread's first call, one of the last of a thread, or one from within the manager.
#[cold]
#[inline(never)]
fn allocate_otherwise(entry: Entry, size: usize, from_manager: impl Fn(usize) -> *mut c_void) -> *mut c_void {
    if entry != Entry::Nested {
        if entry == Entry::First {
            start::thread_begins();
        }
        let block = admit(padded(size), &from_manager);
        leave_from(entry);
        return if block.is_null() { retry(size, from_manager) } else { block };
    }
    let block = from_manager(padded(size));
    pin(block, padded(size));
    block
}

/// Pins a block that was allocated from within the manager.
pub fn pin(block: *mut c_void, bytes: usize) {
    if !block.is_null()
        && !arena::owns(block)
        && pinned::add(block as usize)
        && TABLES.insert(block as usize, bytes).is_err()
    {
        pinned::remove(block as usize);
    }
}

/// The manager had no memory, or the heap is at its limit: collects and tries again.
#[cold]
#[inline(never)]
fn retry(size: usize, from_manager: impl Fn(usize) -> *mut c_void) -> *mut c_void {
    let needs_pages = |used: usize| used.saturating_add(padded(size).div_ceil(4096) + 1);
    let is_limited = |used| needs_pages(used) > LIMIT_PAGES.load(Relaxed);
    // The system's limit may make every call fail: collections that found nothing just before would take all the time.
    // Under guard what was freed since the last is new.
    let is_new = LAYER.guards && SINCE.load(Relaxed) >= padded(size);
    if is_limited(TABLES.used_pages()) || is_new || !collection::has_recently_run() {
        collection::collect(Reason::Pressure);
    }
    let entry = enter();
    let limited = is_limited(TABLES.used_pages());
    let block = admit(padded(size), &from_manager);
    leave_from(entry);
    if block.is_null() {
        if limited {
            REPORTER.refused();
        }
        return out_of_memory();
    }
    block
}

/// # Safety
/// As C's `free`.
#[inline(always)]
pub unsafe fn free(block: *mut c_void, operator: bool) {
    if block.is_null() {
        return;
    }
    let single_threaded = single_threaded();
    let slot = REPORTER.slot();
    bump(&slot.free_calls, 1, single_threaded);
    if operator {
        bump(&slot.delete_calls, 1, single_threaded);
    }
    if LAYER.guards || HONOUR.load(Relaxed) || pinned::any() {
        // SAFETY: `block` is live, which C requires of the caller of `free`.
        unsafe { give_back(block) }
    }
}

/// Frees a block of the layer's own, which is pinned.
///
/// # Safety
/// No thread uses it any more.
pub unsafe fn release(block: *mut c_void) {
    // SAFETY: no thread uses the block, as this function requires.
    unsafe { give_back(block) }
}

/// Carries a free out, if the layer, its settings or a pinned block require it.
///
/// # Safety
/// As C's `free`.
#[inline(never)]
unsafe fn give_back(block: *mut c_void) {
    if arena::owns(block) || !LAYER.guards && !HONOUR.load(Relaxed) && !pinned::may_be(block as usize) {
        return;
    }
    // Inside first: no thread may be stopped while it holds the lock of the pinned blocks.
    let entry = enter();
    if entry == Entry::First {
        start::thread_begins();
    }
    let pinned = pinned::remove(block as usize);
    // What the manager allocated and frees itself is its own.
    if LAYER.guards && !(pinned && entry == Entry::Nested) {
        let bytes = freed::take(block);
        leave_from(entry);
        return count(bytes, single_threaded());
    }
    if !pinned && !HONOUR.load(Relaxed) {
        leave_from(entry);
        return;
    }
    TABLES.remove(block as usize);
    // What the table does not contain may be the manager's all the same, by a function that only the manager has; and
    // the manager can report a block that is freed twice.
    // SAFETY: `block` is live, as this function requires.
    unsafe { forward::free(block) };
    leave_from(entry);
}

fn aligned_block(align: usize, size: usize, operator: bool) -> *mut c_void {
    // Together they may be what no request can be.
    let size = if size.saturating_add(align) > LARGEST { usize::MAX } else { size };
    allocate(size, operator, |bytes| forward::memalign(align.max(LEAST), bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate(size, false, forward::malloc)
}

/// Its contents are scanned as any block's: the layer keeps no such bit.
#[unsafe(no_mangle)]
pub extern "C" fn heaptoll_malloc_pointer_free(size: usize) -> *mut c_void {
    allocate(size, false, forward::malloc_pointer_free)
}

#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let size = count.saturating_mul(size);
    allocate(size, false, |bytes| forward::calloc(1, bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    // glibc rounds an odd alignment up.
    let Some(align) = align.max(1).checked_next_power_of_two() else {
        set_errno(libc::EINVAL);
        return ptr::null_mut();
    };
    aligned_block(align, size, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        set_errno(libc::EINVAL);
        return ptr::null_mut();
    }
    aligned_block(align, size, false)
}

/// # Safety
/// As POSIX's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    // SAFETY: errno's address is valid for the calling thread; POSIX requires of the caller that `place` is writable.
    unsafe {
        let errno = *libc::__errno_location();
        let block = aligned_block(align, size, false);
        *libc::__errno_location() = errno;
        if block.is_null() {
            return libc::ENOMEM;
        }
        *place = block;
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    aligned_block(forward::page(), size, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let size = size.max(1).checked_next_multiple_of(forward::page()).unwrap_or(usize::MAX);
    aligned_block(forward::page(), size, false)
}

/// # Safety
/// As glibc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() || arena::owns(block) {
        // SAFETY: `block` is null or of the arena, which `usable_size` handles.
        return unsafe { forward::usable_size(block) };
    }
    if let Some(bytes) = TABLES.bytes_of(block as usize) {
        return bytes - 1;
    }
    if LAYER.guards && FREED.bytes_of(block as usize).is_some() {
        return 0;
    }
    // SAFETY: `block` is live, which glibc requires of the caller of `malloc_usable_size`.
    gate::inside(|| unsafe { forward::usable_size(block) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: `block` is null or live, which the caller of `cfree` guarantees.
    unsafe { free(block, false) }
}

extern "C" fn plain(size: usize) -> *mut c_void {
    allocate(size, true, forward::malloc)
}

extern "C" fn aligned(size: usize, align: usize) -> *mut c_void {
    aligned_block(align, size, true)
}

heaptoll_next::export_operators!(
    new = crate::calls::plain,
    aligned = crate::calls::aligned,
    delete = crate::calls::free
);

mod exported {
    use core::ffi::c_void;

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn free(block: *mut c_void) {
        // SAFETY: `block` is null or live, which C requires of the caller of `free`.
        unsafe { super::free(block, false) }
    }

    heaptoll_next::export_sized_frees!(free);
    heaptoll_next::export_copies!();
}
