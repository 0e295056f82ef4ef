//! The caller's part of the calling thread's stack, apart from this module's.

use core::arch::naked_asm;
use core::ffi::c_void;

/// The address from which on the calling thread's stack is read: that of the caller's frame, as [`with_frame`] passes
/// it. The callee-saved registers lie there too. 0: no roots are needed.
pub type Frame = usize;

/// Calls `inner(context, frame)`.
///
/// # Safety
/// Calling `inner` with this context and any frame is sound.
#[unsafe(naked)]
pub unsafe extern "C" fn with_frame(context: *mut c_void, inner: unsafe extern "C" fn(*mut c_void, Frame)) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov rax, rsi",
        "mov rsi, rsp",
        "sub rsp, 8",
        "call rax",
        "add rsp, 56",
        "ret",
    )
}
