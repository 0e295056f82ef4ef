//! The malloc family and C++'s operators under their names, with the address of the calling code as an argument more.

use core::ffi::{c_int, c_void};
use core::ptr;

use heaptoll_next::forward;
use heaptoll_next::operators::CALLER_AT;

use crate::follow::{allocate, reallocate};

/// Defines functions that jump to others with the return address, which lies at the top of the stack, as one argument
/// more, in a register that they do not use yet.
macro_rules! with_caller {
    ($($name:ident => $function:ident, $register:literal;)*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                concat!("mov ", $register, ", [rsp]"),
                "jmp {function}",
                ".cfi_endproc",
                function = sym $function,
            );
        }
    )* };
}

with_caller! {
    malloc => malloc_from, "rsi";
    heaptoll_malloc_pointer_free => pointer_free_from, "rsi";
    calloc => calloc_from, "rdx";
    realloc => realloc_from, "rdx";
    reallocarray => reallocarray_from, "rcx";
    memalign => memalign_from, "rdx";
    aligned_alloc => aligned_alloc_from, "rdx";
    posix_memalign => posix_memalign_from, "rcx";
    valloc => valloc_from, "rsi";
    pvalloc => pvalloc_from, "rsi";
}

/// Alignment of a block without a requested one.
const WORDS: usize = 16;

extern "C" fn malloc_from(size: usize, caller: usize) -> *mut c_void {
    allocate(size, WORDS, caller, move || forward::malloc(size))
}

extern "C" fn pointer_free_from(size: usize, caller: usize) -> *mut c_void {
    allocate(size, WORDS, caller, move || forward::malloc_pointer_free(size))
}

extern "C" fn calloc_from(count: usize, size: usize, caller: usize) -> *mut c_void {
    allocate(count.saturating_mul(size), WORDS, caller, move || forward::calloc(count, size))
}

unsafe extern "C" fn realloc_from(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    // SAFETY: C requires of the program's call what `reallocate` requires.
    unsafe { reallocate(block, size, caller) }
}

unsafe extern "C" fn reallocarray_from(
    block: *mut c_void,
    count: usize,
    size: usize,
    caller: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: glibc requires of the program's call what `reallocate` requires.
        Some(bytes) => unsafe { reallocate(block, bytes, caller) },
        // SAFETY: glibc requires of the program's call what `forward::reallocarray` requires, which fails.
        None => unsafe { forward::reallocarray(block, count, size) },
    }
}

extern "C" fn memalign_from(align: usize, size: usize, caller: usize) -> *mut c_void {
    allocate(size, align, caller, move || forward::memalign(align, size))
}

extern "C" fn aligned_alloc_from(align: usize, size: usize, caller: usize) -> *mut c_void {
    allocate(size, align, caller, move || forward::aligned_alloc(align, size))
}

unsafe extern "C" fn posix_memalign_from(
    result: *mut *mut c_void,
    align: usize,
    size: usize,
    caller: usize,
) -> c_int {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        // No allocation of the sequence: it fails in every run.
        return libc::EINVAL;
    }
    let mut code = 0;
    let block = allocate(size, align, caller, || {
        let mut block = ptr::null_mut();
        // SAFETY: `forward::posix_memalign` writes to `block`, a local variable.
        code = unsafe { forward::posix_memalign(&mut block, align, size) };
        if code == 0 { block } else { ptr::null_mut() }
    });
    if code == 0 {
        // SAFETY: POSIX requires that `result` may be written to, which happens only on success.
        unsafe { *result = block };
    }
    code
}

extern "C" fn valloc_from(size: usize, caller: usize) -> *mut c_void {
    allocate(size, forward::page(), caller, move || forward::valloc(size))
}

extern "C" fn pvalloc_from(size: usize, caller: usize) -> *mut c_void {
    allocate(size, forward::page(), caller, move || forward::pvalloc(size))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: C requires of the program's call what `free` requires.
    unsafe { crate::follow::free(block) }
}

heaptoll_next::export_sized_frees!(free);
heaptoll_next::export_copies!();

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: glibc requires of the program's call what `usable_size` requires.
    unsafe { crate::follow::usable_size(block) }
}

unsafe fn delete(block: *mut c_void, _operator: bool) {
    // SAFETY: C++ requires of the program's call what `free` requires.
    unsafe { crate::follow::free(block) }
}

/// The caller of an operator is further up, above what its code has pushed.
#[unsafe(naked)]
extern "C" fn plain_new(_size: usize) -> *mut c_void {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov rsi, [rsp + {caller}]",
        "jmp {function}",
        ".cfi_endproc",
        caller = const CALLER_AT,
        function = sym new_from,
    );
}

#[unsafe(naked)]
extern "C" fn aligned_new(_size: usize, _align: usize) -> *mut c_void {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov rdx, [rsp + {caller}]",
        "jmp {function}",
        ".cfi_endproc",
        caller = const CALLER_AT,
        function = sym aligned_new_from,
    );
}

extern "C" fn new_from(size: usize, caller: usize) -> *mut c_void {
    allocate(size, WORDS, caller, move || forward::malloc(size.max(1)))
}

extern "C" fn aligned_new_from(size: usize, align: usize, caller: usize) -> *mut c_void {
    allocate(size, align, caller, || {
        let mut block = ptr::null_mut();
        // SAFETY: `forward::posix_memalign` writes to `block`, a local variable.
        let code = unsafe { forward::posix_memalign(&mut block, align.max(size_of::<usize>()), size.max(1)) };
        if code == 0 { block } else { ptr::null_mut() }
    })
}

heaptoll_next::export_operators! { new = plain_new, aligned = aligned_new, delete = delete }
