//! The thread-local word by which the quarantine knows a thread: where its blocks are.
//!
//! By hand, in the model "initial exec" of the ELF TLS specification: the word's distance from the thread pointer is
//! fixed when the object is loaded, which a preloaded one is from the start, and a reading is two instructions.
//! (`thread_local!` goes through `__tls_get_addr`, which may allocate.)

use heaptoll_quarantine_core::thread::Thread;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the quarantine layer knows the thread-local storage of Linux on x86-64 only");

core::arch::global_asm!(
    ".pushsection .tbss.heaptoll_quarantine_thread,\"awT\",@nobits",
    ".p2align 3",
    ".hidden heaptoll_quarantine_thread",
    ".globl heaptoll_quarantine_thread",
    ".type heaptoll_quarantine_thread,@object",
    ".size heaptoll_quarantine_thread,8",
    "heaptoll_quarantine_thread:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's blocks; null in a new thread.
#[inline(always)]
pub fn get() -> *const Thread {
    let word: *const Thread;
    // SAFETY: the linker turns the name into the word's distance from the thread pointer, which every thread has.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + heaptoll_quarantine_thread@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Changes the calling thread's word.
#[inline(always)]
pub fn set(word: *const Thread) {
    // SAFETY: the linker turns the name into the word's distance from the thread pointer, which every thread has.
    unsafe {
        core::arch::asm!(
            "mov {place}, qword ptr [rip + heaptoll_quarantine_thread@GOTTPOFF]",
            "mov qword ptr fs:[{place}], {word}",
            place = out(reg) _,
            word = in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}
