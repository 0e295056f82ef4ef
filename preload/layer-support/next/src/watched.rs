//! The malloc family as a layer exports it: forwarded to the next one, with a [`Watch`] told of every call.
//!
//! The generic functions here do the work; [`export_family!`](crate::export_family) gives them their C names, in the
//! layer's own object. They cannot have those names here: this library is linked into test programs too, which keep
//! the malloc that they have.

use core::ffi::{c_int, c_void};

use crate::forward;

/// A call for a new block. `realloc` of nothing is a `malloc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Malloc,
    Calloc,
    /// `memalign`, `aligned_alloc`, `posix_memalign`, and with a page for an alignment `valloc` and `pvalloc`. The
    /// alignment is the caller's, which need not be a power of two.
    Aligned {
        align: usize,
    },
    New,
    AlignedNew {
        align: usize,
    },
}

impl Call {
    /// Whether it is C++'s.
    #[inline(always)]
    pub const fn operator(self) -> bool {
        matches!(self, Call::New | Call::AlignedNew { .. })
    }

    /// The alignment that was asked for, if any was.
    #[inline(always)]
    pub const fn align(self) -> Option<usize> {
        match self {
            Call::Aligned { align } | Call::AlignedNew { align } => Some(align),
            _ => None,
        }
    }
}

/// What a layer does about the program's calls. Everything is called on the program's thread, from within its call,
/// and must not allocate.
///
/// A call goes one of three ways. *Short*: told once, a call for a new block after its answer, a block given back before
/// it is; what can be jumps are jumps. *Long*: told before and after, out of line. *Past* the layer, which does nothing.
/// A layer that knows the short way only pays nothing for the others.
pub trait Watch: Sized {
    /// What must be known of a block before it is resized: once it has been, its address may be another thread's.
    type Before;

    /// Whether calls go the short way now.
    #[inline(always)]
    fn short() -> bool {
        true
    }

    /// Whether those that do not go past the layer.
    #[inline(always)]
    fn past() -> bool {
        false
    }

    /// A call for a new block was answered: by null when nothing was given. Gives the block, so that the last thing to
    /// do about it can be a jump.
    #[inline(always)]
    fn asked(block: *mut c_void, _size: usize, _call: Call) -> *mut c_void {
        block
    }

    /// A block, not null, is about to be given back. False: nothing was done, it is to go the long way.
    #[inline(always)]
    fn gives_back(_block: *mut c_void, _operator: bool) -> bool {
        true
    }

    /// A block, not null, is about to be resized. Whatever the way.
    fn resizes(block: *mut c_void) -> Self::Before;

    /// It was resized: to `new`, or, when that is null, not at all (with a size of 0: perhaps given back).
    #[inline(always)]
    fn resized(_block: *mut c_void, _before: Self::Before, _size: usize, _new: *mut c_void) {}

    /// The long way: the next object is about to be asked for a new block. What is given here, a point in time, say,
    /// comes back with the answer.
    #[inline(always)]
    fn begins() -> u64 {
        0
    }

    /// The long way: a call for a new block was answered.
    #[inline(always)]
    fn asked_long(_begun: u64, block: *mut c_void, size: usize, call: Call) {
        Self::asked(block, size, call);
    }

    /// The long way: a block, not null, is about to be given back.
    #[inline(always)]
    fn gives_back_long(block: *mut c_void, operator: bool) -> u64 {
        Self::gives_back(block, operator);
        0
    }

    /// The long way: it was given back.
    #[inline(always)]
    fn gave_back(_begun: u64) {}

    /// The program's `free` (`operator`: C++'s). A layer that does something else with the block than hand it on does it
    /// here, and is not told by any of the above.
    ///
    /// # Safety
    /// As C's `free`.
    #[inline(always)]
    unsafe fn free(block: *mut c_void, operator: bool) {
        // SAFETY: the caller's promise is the same.
        unsafe { hand_back::<Self>(block, operator) }
    }

    /// The program's `realloc`, likewise; `reallocarray` too comes here, unless its product is no size.
    ///
    /// # Safety
    /// As C's `realloc`.
    #[inline(always)]
    unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the caller's promise is the same.
        resize::<Self>(block, size, move || unsafe { forward::realloc(block, size) })
    }
}

/// Asks for a new block, and tells.
#[inline(always)]
pub(crate) fn ask<W: Watch>(call: Call, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if W::short() { W::asked(forward(), size, call) } else { ask_otherwise::<W>(call, size, forward) }
}

#[cold]
#[inline(never)]
fn ask_otherwise<W: Watch>(call: Call, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if W::past() {
        return forward();
    }
    let begun = W::begins();
    let block = forward();
    W::asked_long(begun, block, size, call);
    block
}

#[inline(always)]
pub fn malloc<W: Watch>(size: usize) -> *mut c_void {
    ask::<W>(Call::Malloc, size, move || forward::malloc(size))
}

/// # Safety
/// As C's `free`.
#[inline(always)]
pub unsafe fn free<W: Watch>(block: *mut c_void, operator: bool) {
    // SAFETY: the caller's promise is the same.
    unsafe { W::free(block, operator) }
}

/// Tells, and gives the block back.
#[inline(always)]
unsafe fn hand_back<W: Watch>(block: *mut c_void, operator: bool) {
    if block.is_null() {
        return;
    }
    if !W::short() || !W::gives_back(block, operator) {
        // SAFETY: the caller's promise is the same.
        return unsafe { free_otherwise::<W>(block, operator) };
    }
    // SAFETY: the caller's promise is the same.
    unsafe { forward::free(block) }
}

#[cold]
#[inline(never)]
unsafe fn free_otherwise<W: Watch>(block: *mut c_void, operator: bool) {
    if W::past() {
        // SAFETY: the caller's promise is the same.
        return unsafe { forward::free(block) };
    }
    let begun = W::gives_back_long(block, operator);
    // SAFETY: the caller's promise is the same.
    unsafe { forward::free(block) };
    W::gave_back(begun);
}

#[inline(always)]
pub fn calloc<W: Watch>(count: usize, size: usize) -> *mut c_void {
    ask::<W>(Call::Calloc, count.saturating_mul(size), move || forward::calloc(count, size))
}

#[inline(always)]
fn resize<W: Watch>(block: *mut c_void, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if block.is_null() {
        return ask::<W>(Call::Malloc, size, forward);
    }
    if !W::short() && W::past() {
        return forward();
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
    unsafe { W::realloc(block, size) }
}

/// # Safety
/// As glibc's `reallocarray`.
#[inline(always)]
pub unsafe fn reallocarray<W: Watch>(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise is the same.
        Some(bytes) => unsafe { W::realloc(block, bytes) },
        // SAFETY: the caller's promise is the same.
        None => resize::<W>(block, usize::MAX, move || unsafe { forward::reallocarray(block, count, size) }),
    }
}

#[inline(always)]
pub fn memalign<W: Watch>(align: usize, size: usize) -> *mut c_void {
    ask::<W>(Call::Aligned { align }, size, move || forward::memalign(align, size))
}

#[inline(always)]
pub fn aligned_alloc<W: Watch>(align: usize, size: usize) -> *mut c_void {
    ask::<W>(Call::Aligned { align }, size, move || forward::aligned_alloc(align, size))
}

/// # Safety
/// As POSIX's `posix_memalign`.
#[inline(always)]
pub unsafe fn posix_memalign<W: Watch>(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    let mut code = 0;
    let block = ask::<W>(Call::Aligned { align }, size, || {
        let mut block = core::ptr::null_mut();
        // SAFETY: `block` is a valid place.
        code = unsafe { forward::posix_memalign(&mut block, align, size) };
        if code == 0 { block } else { core::ptr::null_mut() }
    });
    if code == 0 {
        // SAFETY: a place for a pointer by the caller's promise, written to only on success.
        unsafe { *place = block };
    }
    code
}

#[inline(always)]
pub fn valloc<W: Watch>(size: usize) -> *mut c_void {
    ask::<W>(Call::Aligned { align: forward::page() }, size, move || forward::valloc(size))
}

#[inline(always)]
pub fn pvalloc<W: Watch>(size: usize) -> *mut c_void {
    ask::<W>(Call::Aligned { align: forward::page() }, size, move || forward::pvalloc(size))
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
