//! Each thread's position in its chunks: thread-local words.
//!
//! In assembly, in the model "initial exec" of the ELF TLS specification: the words' offset from the thread pointer is
//! fixed when the object is loaded, at start-up for a preloaded one, and no function is called to access them.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the null manager knows the thread-local storage of Linux on x86-64 only");

/// Number of block sizes of which a thread takes a chunk at a time: those below the chunk's.
pub const CURSORS: usize = 16;

core::arch::global_asm!(
    ".pushsection .tbss.heaptoll_null_cursors,\"awT\",@nobits",
    ".p2align 6",
    ".hidden heaptoll_null_cursors",
    ".globl heaptoll_null_cursors",
    ".type heaptoll_null_cursors,@object",
    ".size heaptoll_null_cursors,128",
    "heaptoll_null_cursors:",
    ".zero 128",
    ".popsection",
);

/// The last block that the calling thread took from its chunk of a size; 0: it has no chunk.
#[inline(always)]
pub fn cursor(class: usize) -> usize {
    debug_assert!(class < CURSORS);
    let word: usize;
    // SAFETY: the linker resolves the name to the words' offset from the thread pointer, which every thread has;
    // `class` is below CURSORS, which the callers have checked, so the instruction reads one of the words.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + heaptoll_null_cursors@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0} + 8*{1}]",
            out(reg) word,
            in(reg) class,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    word
}

/// Sets the last block.
#[inline(always)]
pub fn set_cursor(class: usize, word: usize) {
    debug_assert!(class < CURSORS);
    // SAFETY: the linker resolves the name to the words' offset from the thread pointer, which every thread has;
    // `class` is below CURSORS, which the callers have checked, so the instruction writes one of the thread's own
    // words.
    unsafe {
        core::arch::asm!(
            "mov {address}, qword ptr [rip + heaptoll_null_cursors@GOTTPOFF]",
            "mov qword ptr fs:[{address} + 8*{class}], {word}",
            address = out(reg) _,
            class = in(reg) class,
            word = in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}
