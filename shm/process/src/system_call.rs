//! System calls, made directly: the C library's wrappers would change `errno`, are cancellation points, and need
//! thread-local storage, which a thread that marks has not. A program may also define functions of their names itself.

use core::arch::asm;

/// Any system call; negative is a negated `errno`.
///
/// # Safety
/// The preconditions of the system call itself.
#[inline(always)]
pub unsafe fn system_call(number: i64, arguments: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: this is x86_64 Linux's calling convention; the kernel overwrites rcx and r11. The caller establishes the
    // preconditions of the call itself.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
