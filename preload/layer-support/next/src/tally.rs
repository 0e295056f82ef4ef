//! Counts calls on the statistics page, in the same way for every layer.

use core::sync::atomic::Ordering::Relaxed;

use heaptoll_stats_page::Slot;

/// Counts a call for a new block of `size` bytes, which got one or not.
#[inline(always)]
pub fn count_allocation(slot: &Slot, size: usize, got: bool, operator: bool) {
    if operator {
        slot.new_calls.fetch_add(1, Relaxed);
    }
    slot.malloc_calls.fetch_add(1, Relaxed);
    slot.requested_bytes.fetch_add(size as u64, Relaxed);
    if !got {
        slot.failed_calls.fetch_add(1, Relaxed);
    }
}

/// Counts a call that frees a block (not null).
#[inline(always)]
pub fn count_free(slot: &Slot, operator: bool) {
    if operator {
        slot.delete_calls.fetch_add(1, Relaxed);
    }
    slot.free_calls.fetch_add(1, Relaxed);
}

/// Counts a call that resizes a block (not null) to `size` bytes, which got one or not.
#[inline(always)]
pub fn count_resize(slot: &Slot, size: usize, got: bool) {
    slot.realloc_calls.fetch_add(1, Relaxed);
    slot.requested_bytes.fetch_add(size as u64, Relaxed);
    if !got && size != 0 {
        slot.failed_calls.fetch_add(1, Relaxed);
    }
}
