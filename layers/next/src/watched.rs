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
/// and must not allocate. What a layer has no use for is of type `()` or [`Infallible`](core::convert::Infallible)
/// and costs nothing.
pub trait Watch {
    /// What is kept from before a call for a new block to its answer: a point in time, say.
    type Begun: Copy;
    /// What must be known of a block before it is resized: once it has been, its address may be another thread's.
    type Before;
    /// What is kept while a block is given back, by a layer that has something to do after it as well.
    type Giving;

    /// The next object is about to be asked for a new block.
    fn begins() -> Self::Begun;

    /// A call for a new block was answered: by null when nothing was given.
    fn asked(begun: Self::Begun, block: *mut c_void, size: usize, call: Call);

    /// A block, not null, is about to be given back. `None`: nothing is to be done after it, and the call goes on as a
    /// jump.
    fn gives_back(block: *mut c_void, operator: bool) -> Option<Self::Giving>;

    /// It was given back.
    fn gave_back(giving: Self::Giving);

    /// A block, not null, is about to be resized.
    fn resizes(block: *mut c_void) -> Self::Before;

    /// It was resized: to `new`, or, when that is null, not at all (with a size of 0: perhaps given back).
    fn resized(block: *mut c_void, before: Self::Before, size: usize, new: *mut c_void);
}

/// Asks for a new block, and tells.
#[inline(always)]
pub(crate) fn ask<W: Watch>(call: Call, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let begun = W::begins();
    let block = forward();
    W::asked(begun, block, size, call);
    block
}

#[inline(always)]
pub fn malloc<W: Watch>(size: usize) -> *mut c_void {
    ask::<W>(Call::Malloc, size, || forward::malloc(size))
}

/// # Safety
/// As C's `free`.
#[inline(always)]
pub unsafe fn free<W: Watch>(block: *mut c_void, operator: bool) {
    let giving = if block.is_null() { None } else { W::gives_back(block, operator) };
    // SAFETY: the caller's promise is the same.
    unsafe { forward::free(block) };
    if let Some(giving) = giving {
        W::gave_back(giving);
    }
}

#[inline(always)]
pub fn calloc<W: Watch>(count: usize, size: usize) -> *mut c_void {
    ask::<W>(Call::Calloc, count.saturating_mul(size), || forward::calloc(count, size))
}

#[inline(always)]
fn resize<W: Watch>(block: *mut c_void, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if block.is_null() {
        return ask::<W>(Call::Malloc, size, forward);
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
    ask::<W>(Call::Aligned { align }, size, || forward::memalign(align, size))
}

#[inline(always)]
pub fn aligned_alloc<W: Watch>(align: usize, size: usize) -> *mut c_void {
    ask::<W>(Call::Aligned { align }, size, || forward::aligned_alloc(align, size))
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
    ask::<W>(Call::Aligned { align: forward::page() }, size, || forward::valloc(size))
}

#[inline(always)]
pub fn pvalloc<W: Watch>(size: usize) -> *mut c_void {
    ask::<W>(Call::Aligned { align: forward::page() }, size, || forward::pvalloc(size))
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
