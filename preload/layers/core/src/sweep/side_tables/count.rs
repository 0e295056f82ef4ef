//! A count that costs little where no other thread is, and is right where one is.

use core::arch::asm;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// A count of one of two widths.
#[repr(transparent)]
pub struct Count<T: Width>(T::Atomic);

/// What a count may be of.
pub trait Width: Sized {
    type Atomic;
}

impl Width for u16 {
    type Atomic = AtomicU16;
}

impl Width for usize {
    type Atomic = AtomicUsize;
}

/// As one instruction, so that a signal's handler does not come between, but none that waits for the memory.
macro_rules! count {
    ($width:ty, $atomic:ty, $instruction:literal) => {
        impl Count<$width> {
            #[allow(dead_code)]
            pub const fn new(value: $width) -> Count<$width> {
                Count(<$atomic>::new(value))
            }

            #[inline(always)]
            pub fn get(&self) -> $width {
                self.0.load(Ordering::Relaxed)
            }

            /// Adds, with wrap-around; returns the former value.
            #[inline(always)]
            pub fn add(&self, change: $width, single_threaded: bool) -> $width {
                if !single_threaded {
                    return self.0.fetch_add(change, Ordering::Relaxed);
                }
                let mut was = change;
                // SAFETY: the count is valid, and no other thread is there.
                unsafe {
                    asm!($instruction, count = in(reg) self.0.as_ptr(), was = inout(reg) was, options(nostack))
                };
                was
            }
        }
    };
}

count!(u16, AtomicU16, "xadd word ptr [{count}], {was:x}");
count!(usize, AtomicUsize, "xadd qword ptr [{count}], {was}");
