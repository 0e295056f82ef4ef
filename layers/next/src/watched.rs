//! The malloc family as a layer exports it: forwarded to the next one, with a [`Watch`] told of every call.
//!
//! The generic functions here do the work; [`export_family!`](crate::export_family) gives them their C names, in the
//! layer's own object. They cannot have those names here: this library is linked into test programs too, which keep
//! the malloc that they have.

use core::ffi::{c_int, c_void};

use crate::forward;

/// What a layer does about the program's calls. Everything is called on the program's thread, from within its call,
/// and must not allocate.
pub trait Watch {
    /// What must be known of a block before it is resized: once it has been, its address may be another thread's.
    type Before;

    /// A call for a new block was answered: by null when nothing was given. `operator` is true for C++'s.
    fn asked(block: *mut c_void, size: usize, operator: bool);

    /// A block, not null, is about to be given back.
    fn gives_back(block: *mut c_void, operator: bool);

    /// A block, not null, is about to be resized.
    fn resizes(block: *mut c_void) -> Self::Before;

    /// It was resized: to `new`, or, when that is null, not at all (with a size of 0: perhaps given back).
    fn resized(block: *mut c_void, before: Self::Before, size: usize, new: *mut c_void);
}

#[inline(always)]
fn told<W: Watch>(block: *mut c_void, size: usize) -> *mut c_void {
    W::asked(block, size, false);
    block
}

#[inline(always)]
pub fn malloc<W: Watch>(size: usize) -> *mut c_void {
    told::<W>(forward::malloc(size), size)
}

/// # Safety
/// As C's `free`.
#[inline(always)]
pub unsafe fn free<W: Watch>(block: *mut c_void, operator: bool) {
    if !block.is_null() {
        W::gives_back(block, operator);
    }
    // SAFETY: the caller's promise is the same.
    unsafe { forward::free(block) }
}

#[inline(always)]
pub fn calloc<W: Watch>(count: usize, size: usize) -> *mut c_void {
    told::<W>(forward::calloc(count, size), count.saturating_mul(size))
}

#[inline(always)]
fn resize<W: Watch>(block: *mut c_void, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if block.is_null() {
        return told::<W>(forward(), size);
    }
    let before = W::resizes(block);
    let new = forward();
    W::resized(block, before, size, new);
    new
}

/// # Safety
/// As C's `realloc`.
#[inline(always)]
pub unsafe fn realloc<W: Watch>(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise is the same.
    resize::<W>(block, size, || unsafe { forward::realloc(block, size) })
}

/// # Safety
/// As glibc's `reallocarray`.
#[inline(always)]
pub unsafe fn reallocarray<W: Watch>(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let bytes = count.saturating_mul(size);
    // SAFETY: the caller's promise is the same.
    resize::<W>(block, bytes, || unsafe { forward::reallocarray(block, count, size) })
}

#[inline(always)]
pub fn memalign<W: Watch>(align: usize, size: usize) -> *mut c_void {
    told::<W>(forward::memalign(align, size), size)
}

#[inline(always)]
pub fn aligned_alloc<W: Watch>(align: usize, size: usize) -> *mut c_void {
    told::<W>(forward::aligned_alloc(align, size), size)
}

/// # Safety
/// As POSIX's `posix_memalign`.
#[inline(always)]
pub unsafe fn posix_memalign<W: Watch>(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    let mut block = core::ptr::null_mut();
    // SAFETY: `block` is a valid place; `place` is one by the caller's promise, and is written to only on success.
    unsafe {
        let code = forward::posix_memalign(&mut block, align, size);
        if code == 0 {
            *place = block;
        } else {
            block = core::ptr::null_mut();
        }
        W::asked(block, size, false);
        code
    }
}

#[inline(always)]
pub fn valloc<W: Watch>(size: usize) -> *mut c_void {
    told::<W>(forward::valloc(size), size)
}

#[inline(always)]
pub fn pvalloc<W: Watch>(size: usize) -> *mut c_void {
    told::<W>(forward::pvalloc(size), size)
}

/// Exports the malloc family of C under its names, watched by a type that is [`Watch`].
#[macro_export]
macro_rules! export_family {
    ($watch:ty) => {
        $crate::export_family! { @functions $watch;
            fn malloc(size: usize);
            fn calloc(count: usize, size: usize);
            fn memalign(align: usize, size: usize);
            fn aligned_alloc(align: usize, size: usize);
            fn valloc(size: usize);
            fn pvalloc(size: usize);
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free(block: *mut core::ffi::c_void) {
            // SAFETY: the caller's promise is the same.
            unsafe { $crate::watched::free::<$watch>(block, false) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(block: *mut core::ffi::c_void, size: usize) -> *mut core::ffi::c_void {
            // SAFETY: the caller's promise is the same.
            unsafe { $crate::watched::realloc::<$watch>(block, size) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn reallocarray(
            block: *mut core::ffi::c_void,
            count: usize,
            size: usize,
        ) -> *mut core::ffi::c_void {
            // SAFETY: the caller's promise is the same.
            unsafe { $crate::watched::reallocarray::<$watch>(block, count, size) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(
            place: *mut *mut core::ffi::c_void,
            align: usize,
            size: usize,
        ) -> core::ffi::c_int {
            // SAFETY: the caller's promise is the same.
            unsafe { $crate::watched::posix_memalign::<$watch>(place, align, size) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut core::ffi::c_void) -> usize {
            // SAFETY: the caller's promise is the same.
            unsafe { $crate::forward::usable_size(block) }
        }
    };
    (@functions $watch:ty; $(fn $name:ident($($argument:ident: usize),*);)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: usize),*) -> *mut core::ffi::c_void {
            $crate::watched::$name::<$watch>($($argument),*)
        }
    )* };
}
