//! Whether the calling thread is inside the manager: within a call that a layer has made.
//!
//! A manager's functions may call the malloc family or `operator new`, and find the layer's. gperftools' first answer to
//! `malloc_usable_size` makes an object by `operator new`: a layer that queries that object's size, too, never returns.
//! A manager that allocates while it holds its locks would wait for itself. So a layer that queries the manager makes
//! every call into it by [`call`], and queries nothing where [`is_inside`]. Such a call counts as any other: it may be one
//! of a signal handler that has interrupted the manager.

use core::arch::asm;

use heaptoll_runtime::thread_word;

thread_word! {
    /// The stack pointer at the innermost call into the manager; 0: the thread is outside.
    ENTERED: "heaptoll_next_entered"
}

/// Makes a call into the manager.
#[inline(always)]
pub fn call<T>(into_manager: impl FnOnce() -> T) -> T {
    if may_enter() {
        return enter(into_manager);
    }
    let outer = if is_inside() { ENTERED::get() } else { 0 };
    mark();
    let result = into_manager();
    ENTERED::set(outer);
    result
}

/// The same, by a thread that is not inside, in fewer instructions.
#[inline(always)]
pub fn enter<T>(into_manager: impl FnOnce() -> T) -> T {
    mark();
    let result = into_manager();
    // SAFETY: the linker turns the name into the word's distance from the thread pointer, which every thread has.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + heaptoll_next_entered@GOTTPOFF]",
            "mov qword ptr fs:[{place}], 0",
            place = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
    result
}

/// Whether the calling thread is known to be outside. A thread that is not may be outside all the same: see
/// [`is_inside`].
#[inline(always)]
pub fn may_enter() -> bool {
    // SAFETY: the linker turns the name into the word's distance from the thread pointer, which every thread has.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + heaptoll_next_entered@GOTTPOFF]",
            "cmp qword ptr fs:[{place}], 0",
            "jne {no}",
            place = out(reg) _,
            no = label { return false },
            options(nostack),
        );
    }
    true
}

/// Whether the calling thread is inside the manager.
#[inline(always)]
pub fn is_inside() -> bool {
    let entered = ENTERED::get();
    // A handler may leave the manager by `siglongjmp`: then the stack no longer reaches to where the thread entered.
    entered != 0 && stack_pointer() < entered
}

/// Sets the word.
#[inline(always)]
fn mark() {
    // SAFETY: the linker turns the name into the word's distance from the thread pointer, which every thread has.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + heaptoll_next_entered@GOTTPOFF]",
            "mov qword ptr fs:[{place}], rsp",
            place = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

#[inline(always)]
fn stack_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the instruction only reads the register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}
