//! The thread-local word by which the rings identify a thread.
//!
//! In assembly, in the model "initial exec" of the ELF TLS specification: the word's offset from the thread pointer is
//! fixed when the object is loaded, at start-up for a preloaded one, and a read takes two instructions.
//! (`thread_local!` goes through `__tls_get_addr`, which may allocate.)

use heaptoll_alloc_ring::ThreadWord;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the recording layer knows the thread-local storage of Linux on x86-64 only");

core::arch::global_asm!(
    ".pushsection .tbss.heaptoll_record_thread,\"awT\",@nobits",
    ".p2align 3",
    ".hidden heaptoll_record_thread",
    ".globl heaptoll_record_thread",
    ".type heaptoll_record_thread,@object",
    ".size heaptoll_record_thread,8",
    "heaptoll_record_thread:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's word; 0 in a new thread.
pub struct Word;

impl ThreadWord for Word {
    #[inline(always)]
    fn get() -> usize {
        let word: usize;
        // SAFETY: the linker resolves the name to the word's offset from the thread pointer, which every thread has;
        // the instructions only read.
        unsafe {
            core::arch::asm!(
                "mov {0}, qword ptr [rip + heaptoll_record_thread@GOTTPOFF]",
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) word,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        word
    }

    #[inline(always)]
    fn set(word: usize) {
        // SAFETY: the linker resolves the name to the word's offset from the thread pointer, which every thread has;
        // the instructions write the thread's own word.
        unsafe {
            core::arch::asm!(
                "mov {address}, qword ptr [rip + heaptoll_record_thread@GOTTPOFF]",
                "mov qword ptr fs:[{address}], {word}",
                address = out(reg) _,
                word = in(reg) word,
                options(nostack, preserves_flags),
            );
        }
    }
}
