//! realloc: a block stays where it is if it can, and moves with its contents if it cannot.

use core::ptr::{self, NonNull};

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::{LARGEST, Misuse};

use super::Heap;
use crate::cache::Cache;
use crate::class::{CLASS, FREE, LARGE, LARGE_ATOMIC, SMALL_MAX, UNIT, is_atomic, is_small};

impl Heap {
    /// Makes a block at least `bytes` large, where it is or elsewhere with its contents. Null when there is no memory:
    /// nothing has changed then. The old block is freed, in every mode, as the program cannot use it any more.
    ///
    /// # Errors
    /// As [`Heap::free`].
    ///
    /// # Safety
    /// As [`Heap::free`].
    pub unsafe fn reallocate(
        &self,
        cache: &mut Cache,
        block: NonNull<u8>,
        bytes: usize,
    ) -> Result<*mut u8, Misuse> {
        let address = block.as_ptr() as usize;
        let Some(unit) = self.reservation.unit_of(address) else { return Err(Misuse::Foreign) };
        let span_class = self.reservation.span_class(unit);
        let usable;
        if is_small(span_class) {
            self.verify_own(cache, unit, span_class, address)?;
            usable = CLASS[span_class as usize].size as usize;
            if self.with_end_byte(bytes) <= usable && (bytes > usable / 2 || usable <= 32) {
                return Ok(block.as_ptr());
            }
        } else {
            if span_class == FREE {
                return Err(Misuse::DoubleFree);
            }
            let first = self.reservation.first(unit);
            if self.reservation.address(first) != address {
                return Err(Misuse::Damaged);
            }
            usable = self.large_bytes(unit);
            if bytes > SMALL_MAX
                && bytes < LARGEST
                && self.resize_large(unit, span_class, self.with_end_byte(bytes))
            {
                return Ok(block.as_ptr());
            }
            if self.is_held(first) {
                return Err(Misuse::DoubleFree);
            }
        }
        // A block that grew once will grow again: spare units after it cost no memory until they are touched.
        let new = if bytes > SMALL_MAX && bytes <= LARGEST && bytes > usable {
            let span_class = if is_atomic(span_class) { LARGE_ATOMIC } else { LARGE };
            // Within a limit spare units count as much as blocks.
            let limited = self.is_limited();
            let spare = if limited { 0 } else { bytes / 2 };
            let new = self.allocate_large(cache, self.with_end_byte(bytes), UNIT, span_class, spare);
            if new.is_null() && !limited {
                self.allocate_large(cache, self.with_end_byte(bytes), UNIT, span_class, 0)
            } else {
                new
            }
        } else {
            self.allocate(cache, bytes, is_atomic(span_class))
        };
        if !new.is_null() {
            assert_internal!(new != block.as_ptr(), "a block that is copied is another one");
            assert_internal!(
                self.usable(new) >= usable.min(bytes),
                "the contents of a block fit the one that replaces it"
            );
            // SAFETY: both blocks are live, distinct, and at least that long; the old one is freed once.
            unsafe {
                ptr::copy_nonoverlapping(block.as_ptr(), new, usable.min(bytes));
                self.free(cache, block.as_ptr())?;
            }
        }
        Ok(new)
    }
}
