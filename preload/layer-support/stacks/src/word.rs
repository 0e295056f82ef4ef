//! A thread-local word, as an `initial exec` variable of the ELF TLS specification written in assembly: its distance
//! from the thread pointer is fixed when the object is loaded, and a read is two instructions. std's `thread_local!` in
//! a shared object goes through `__tls_get_addr`, which may allocate. The price is that the object must be loaded at
//! start-up, as a preloaded one is.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.heaptoll_stacks_thread,\"awT\",@nobits",
    ".p2align 3",
    ".hidden heaptoll_stacks_thread",
    ".globl heaptoll_stacks_thread",
    ".type heaptoll_stacks_thread,@object",
    ".size heaptoll_stacks_thread,8",
    "heaptoll_stacks_thread:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's word: 0 in a new thread.
#[inline(always)]
pub fn get() -> usize {
    let word: usize;
    // SAFETY: the linker replaces the name by the word's distance from the thread pointer, which every thread has; the
    // word is read only.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + heaptoll_stacks_thread@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Sets the calling thread's word.
#[inline(always)]
pub fn set(word: usize) {
    // SAFETY: the linker replaces the name by the word's distance from the thread pointer, which every thread has; only
    // the thread's own word is written.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + heaptoll_stacks_thread@GOTTPOFF]",
            "mov qword ptr fs:[{place}], {word}",
            place = out(reg) _,
            word = in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

/// The thread pointer: no two threads of a process that live at the same time have the same. The ABI keeps it in the
/// word that it points to.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let word: usize;
    // SAFETY: the ABI gives every thread this word, which is read only.
    unsafe {
        asm!("mov {0}, qword ptr fs:[0]", out(reg) word, options(pure, readonly, nostack, preserves_flags))
    };
    word
}
