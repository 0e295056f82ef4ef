//! What a thread keeps: the bytes until its next sample point, and the state of its random sequence.

use core::arch::asm;

use heaptoll_runtime::thread_word;

thread_word! {
    /// Bytes that the calling thread may allocate before the next one is a sample point; 0 in a new thread.
    pub Left: "heaptoll_sample_left"
}

thread_word! {
    /// The state of the calling thread's random sequence; 0: it has none yet.
    pub Sequence: "heaptoll_sample_random"
}

/// Counts down by an allocation of `bytes`; whether a sample point lies in it. One instruction changes the word, so that
/// a signal handler that allocates loses nothing.
#[inline(always)]
pub fn count_down(bytes: usize) -> bool {
    // SAFETY: the linker turns the name into the word's distance from the thread pointer, which every thread has.
    unsafe {
        asm!(
            "mov rax, qword ptr [rip + heaptoll_sample_left@GOTTPOFF]",
            "sub qword ptr fs:[rax], {bytes}",
            "jb {passed}",
            bytes = in(reg) bytes,
            out("rax") _,
            passed = label { return true },
            options(nostack),
        );
    }
    false
}
