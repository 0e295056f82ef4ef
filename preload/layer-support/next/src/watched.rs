//! The malloc family as a layer exports it: forwarded to the next one, with the hooks of a [`Watch`] around every call.
//!
//! The generic functions here do the work; [`export_family!`](crate::export_family) gives them their C names, in the
//! layer's own object. They cannot have those names here: this library is also linked into test programs, which must
//! keep their own malloc.

use core::ffi::{c_int, c_void};

use crate::{family, forward, inside};

/// A call for a new block. `realloc` of null is a `malloc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Malloc,
    Calloc,
    /// `memalign`, `aligned_alloc`, `posix_memalign`, and with a page as the alignment `valloc` and `pvalloc`. The
    /// alignment is the requested one, which need not be a power of two.
    Aligned {
        align: usize,
    },
    New,
    AlignedNew {
        align: usize,
    },
}

impl Call {
    /// Whether it is an operator of C++.
    #[inline(always)]
    pub const fn operator(self) -> bool {
        matches!(self, Call::New | Call::AlignedNew { .. })
    }

    /// The requested alignment, if any.
    #[inline(always)]
    pub const fn align(self) -> Option<usize> {
        match self {
            Call::Aligned { align } | Call::AlignedNew { align } => Some(align),
            _ => None,
        }
    }
}

/// A layer's hooks for the program's calls. They run on the program's thread, within its call, and must not allocate.
///
/// A call takes one of three paths. *Fast*: one hook runs, after an allocation or before a free; tail calls are used
/// where possible. *Slow*: hooks run before and after, out of line. *Bypass*: no hook runs. A layer that uses the fast
/// path only pays nothing for the others.
pub trait Watch: Sized {
    /// Data about a block from before it is resized: afterwards its address may belong to another thread's block.
    type Before;

    /// Whether the layer queries the manager. Then every call into it is made by [`inside`], and one from within it takes
    /// the slow path.
    const QUERIES: bool = false;

    /// The fast path: queries the manager about a new block, null if the call failed, for [`Watch::after_allocation`].
    #[inline(always)]
    fn query(_block: *mut c_void) -> usize {
        0
    }

    /// Whether calls take the fast path now.
    #[inline(always)]
    fn fast_path() -> bool {
        true
    }

    /// Whether frees take it: they may where allocations may not.
    #[inline(always)]
    fn free_fast_path() -> bool {
        Self::fast_path()
    }

    /// Whether a call for a new block of `size` bytes takes it now.
    #[inline(always)]
    fn fast_path_of(_size: usize) -> bool {
        Self::fast_path()
    }

    /// Whether calls that do not take the fast path bypass the layer.
    #[inline(always)]
    fn bypasses() -> bool {
        false
    }

    /// A call for a new block has returned `block`, null if it failed. Returns the block, so that the last step can be
    /// a tail call.
    #[inline(always)]
    fn after_allocation(block: *mut c_void, _answer: usize, _size: usize, _call: Call) -> *mut c_void {
        block
    }

    /// A block, not null, is about to be freed. False: nothing was done, and the call takes the slow path.
    #[inline(always)]
    fn before_free(_block: *mut c_void, _operator: bool) -> bool {
        true
    }

    /// A block, not null, is about to be resized, on either path.
    fn before_resize(block: *mut c_void) -> Self::Before;

    /// It was resized: to `new`, or, when that is null, not at all (with a size of 0: perhaps freed).
    #[inline(always)]
    fn after_resize(_block: *mut c_void, _before: Self::Before, _size: usize, _new: *mut c_void) {}

    /// The slow path: the next object is about to be called for a new block. The result, for example a time stamp, is
    /// passed to [`Watch::after_allocation_slow`].
    #[inline(always)]
    fn before_allocation() -> u64 {
        0
    }

    /// The slow path: a call for a new block has returned.
    #[inline(always)]
    fn after_allocation_slow(_begun: u64, block: *mut c_void, size: usize, call: Call) {
        Self::after_allocation(block, 0, size, call);
    }

    /// The slow path: a block, not null, is about to be freed. The result is passed to [`Watch::after_free`].
    #[inline(always)]
    fn before_free_slow(block: *mut c_void, operator: bool) -> u64 {
        Self::before_free(block, operator);
        0
    }

    /// The slow path: it was freed.
    #[inline(always)]
    fn after_free(_begun: u64) {}

    /// The next object's `malloc`. A layer that keeps its address overrides this.
    #[inline(always)]
    fn forward_malloc(size: usize) -> *mut c_void {
        forward::malloc(size)
    }

    /// The program's `free` (`operator`: C++'s). A layer that does not simply forward the block overrides this, and
    /// then none of the hooks for freed blocks runs.
    ///
    /// # Safety
    /// `block` is null or a live block of this malloc family, as for C's `free`.
    #[inline(always)]
    unsafe fn free(block: *mut c_void, operator: bool) {
        // SAFETY: the contract of `forward_free` is that of this function.
        unsafe { forward_free::<Self>(block, operator) }
    }

    /// The program's `realloc`, likewise; also `reallocarray`, unless its product overflows.
    ///
    /// # Safety
    /// `block` is null or a live block of this malloc family, as for C's `realloc`.
    #[inline(always)]
    unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: the contract of `forward::realloc` is that of this function.
        resize::<Self>(block, size, move || unsafe { forward::realloc(block, size) })
    }
}

/// Makes a call of the next object, if it is known by now.
#[inline(always)]
fn call<W: Watch, T>(forward: impl FnOnce() -> T) -> T {
    if W::QUERIES && family::ready().is_some() { inside::call(forward) } else { forward() }
}

/// The same on the fast path.
#[inline(always)]
fn enter<W: Watch, T>(forward: impl FnOnce() -> T) -> T {
    if W::QUERIES { inside::enter(forward) } else { forward() }
}

/// Whether the fast path may be taken.
#[inline(always)]
fn may_enter<W: Watch>() -> bool {
    !W::QUERIES || inside::may_enter()
}

/// Allocates a new block by `forward`, with the hooks.
#[inline(always)]
pub(crate) fn allocate<W: Watch>(
    kind: Call,
    size: usize,
    forward: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if W::fast_path_of(size) && may_enter::<W>() {
        let (block, answer) = enter::<W, _>(|| {
            let block = forward();
            (block, W::query(block))
        });
        W::after_allocation(block, answer, size, kind)
    } else {
        allocate_slow::<W>(kind, size, forward)
    }
}

#[cold]
#[inline(never)]
fn allocate_slow<W: Watch>(kind: Call, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if W::bypasses() {
        return forward();
    }
    let begun = W::before_allocation();
    let block = call::<W, _>(forward);
    W::after_allocation_slow(begun, block, size, kind);
    block
}

#[inline(always)]
pub fn malloc<W: Watch>(size: usize) -> *mut c_void {
    allocate::<W>(Call::Malloc, size, move || W::forward_malloc(size))
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for C's `free`.
#[inline(always)]
pub unsafe fn free<W: Watch>(block: *mut c_void, operator: bool) {
    // SAFETY: the contract of `Watch::free` is that of this function.
    unsafe { W::free(block, operator) }
}

/// Frees the block, with the hooks.
///
/// # Safety
/// `block` is null or a live block of this malloc family.
#[inline(always)]
unsafe fn forward_free<W: Watch>(block: *mut c_void, operator: bool) {
    if block.is_null() {
        return;
    }
    if !W::free_fast_path() || !may_enter::<W>() || !W::before_free(block, operator) {
        // SAFETY: by this function's contract the block is live, and it is not null.
        return unsafe { free_slow::<W>(block, operator) };
    }
    // SAFETY: by this function's contract the block is live.
    enter::<W, _>(|| unsafe { forward::free(block) });
}

#[cold]
#[inline(never)]
unsafe fn free_slow<W: Watch>(block: *mut c_void, operator: bool) {
    if W::bypasses() {
        // SAFETY: the only caller, `forward_free`, passes a live block.
        return unsafe { forward::free(block) };
    }
    let begun = W::before_free_slow(block, operator);
    // SAFETY: the only caller, `forward_free`, passes a live block.
    call::<W, _>(|| unsafe { forward::free(block) });
    W::after_free(begun);
}

#[inline(always)]
pub fn calloc<W: Watch>(count: usize, size: usize) -> *mut c_void {
    allocate::<W>(Call::Calloc, count.saturating_mul(size), move || forward::calloc(count, size))
}

#[inline(always)]
fn resize<W: Watch>(block: *mut c_void, size: usize, forward: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if block.is_null() {
        return allocate::<W>(Call::Malloc, size, forward);
    }
    if !W::fast_path() && W::bypasses() {
        return forward();
    }
    let before = W::before_resize(block);
    let new = call::<W, _>(forward);
    W::after_resize(block, before, size, new);
    new
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for C's `realloc`.
#[inline(always)]
pub unsafe fn realloc<W: Watch>(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the contract of `Watch::realloc` is that of this function.
    unsafe { W::realloc(block, size) }
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for glibc's `reallocarray`.
#[inline(always)]
pub unsafe fn reallocarray<W: Watch>(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the contract of `Watch::realloc` is that of this function.
        Some(bytes) => unsafe { W::realloc(block, bytes) },
        // SAFETY: the contract of `forward::reallocarray` is that of this function.
        None => resize::<W>(block, usize::MAX, move || unsafe { forward::reallocarray(block, count, size) }),
    }
}

#[inline(always)]
pub fn memalign<W: Watch>(align: usize, size: usize) -> *mut c_void {
    allocate::<W>(Call::Aligned { align }, size, move || forward::memalign(align, size))
}

#[inline(always)]
pub fn aligned_alloc<W: Watch>(align: usize, size: usize) -> *mut c_void {
    allocate::<W>(Call::Aligned { align }, size, move || forward::aligned_alloc(align, size))
}

/// # Safety
/// `result` may be written to, as for POSIX's `posix_memalign`.
#[inline(always)]
pub unsafe fn posix_memalign<W: Watch>(result: *mut *mut c_void, align: usize, size: usize) -> c_int {
    let mut code = 0;
    let block = allocate::<W>(Call::Aligned { align }, size, || {
        let mut block = core::ptr::null_mut();
        // SAFETY: `forward::posix_memalign` writes to `block`, a local variable.
        code = unsafe { forward::posix_memalign(&mut block, align, size) };
        if code == 0 { block } else { core::ptr::null_mut() }
    });
    if code == 0 {
        // SAFETY: by this function's contract `result` may be written to, which happens only on success.
        unsafe { *result = block };
    }
    code
}

pub fn heaptoll_malloc_pointer_free<W: Watch>(size: usize) -> *mut c_void {
    allocate::<W>(Call::Malloc, size, move || forward::malloc_pointer_free(size))
}

#[inline(always)]
pub fn valloc<W: Watch>(size: usize) -> *mut c_void {
    allocate::<W>(Call::Aligned { align: forward::page() }, size, move || forward::valloc(size))
}

#[inline(always)]
pub fn pvalloc<W: Watch>(size: usize) -> *mut c_void {
    allocate::<W>(Call::Aligned { align: forward::page() }, size, move || forward::pvalloc(size))
}

/// # Safety
/// `block` is null or a live block of this malloc family, as for glibc's `malloc_usable_size`.
#[inline(always)]
pub unsafe fn usable_size<W: Watch>(block: *mut c_void) -> usize {
    // SAFETY: the contract of `forward::usable_size` is that of this function.
    call::<W, _>(|| unsafe { forward::usable_size(block) })
}

/// Exports the malloc family of C under its names, watched by a type that implements [`Watch`].
#[macro_export]
macro_rules! export_family {
    ($watch:ty) => {
        $crate::export_family! { @functions $watch;
            fn malloc(size: usize);
            fn heaptoll_malloc_pointer_free(size: usize);
            fn calloc(count: usize, size: usize);
            fn memalign(align: usize, size: usize);
            fn aligned_alloc(align: usize, size: usize);
            fn valloc(size: usize);
            fn pvalloc(size: usize);
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free(block: *mut core::ffi::c_void) {
            // SAFETY: C requires of the program's call what `watched::free` requires.
            unsafe { $crate::watched::free::<$watch>(block, false) }
        }

        $crate::export_sized_frees!(free);
        $crate::export_copies!();

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(block: *mut core::ffi::c_void, size: usize) -> *mut core::ffi::c_void {
            // SAFETY: C requires of the program's call what `watched::realloc` requires.
            unsafe { $crate::watched::realloc::<$watch>(block, size) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn reallocarray(
            block: *mut core::ffi::c_void,
            count: usize,
            size: usize,
        ) -> *mut core::ffi::c_void {
            // SAFETY: glibc requires of the program's call what `watched::reallocarray` requires.
            unsafe { $crate::watched::reallocarray::<$watch>(block, count, size) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(
            result: *mut *mut core::ffi::c_void,
            align: usize,
            size: usize,
        ) -> core::ffi::c_int {
            // SAFETY: POSIX requires of the program's call what `watched::posix_memalign` requires.
            unsafe { $crate::watched::posix_memalign::<$watch>(result, align, size) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut core::ffi::c_void) -> usize {
            // SAFETY: glibc requires of the program's call what `watched::usable_size` requires.
            unsafe { $crate::watched::usable_size::<$watch>(block) }
        }
    };
    (@functions $watch:ty; $(fn $name:ident($($argument:ident: usize),*);)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: usize),*) -> *mut core::ffi::c_void {
            $crate::watched::$name::<$watch>($($argument),*)
        }
    )* };
}
