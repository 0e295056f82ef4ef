//! Each thread's place in its chunks: thread-local words, by hand.
//!
//! In the model "initial exec" of the ELF TLS specification: the words' distance from the thread pointer is fixed when
//! the object is loaded, which a preloaded one is from the start, and nothing is called to reach them.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the null manager knows the thread-local storage of Linux on x86-64 only");

/// Sizes of blocks of which a thread takes a chunk at a time: those below the chunk's.
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

/// The last block that the calling thread was given from its chunk of a size; 0: it has none.
#[inline(always)]
pub fn cursor(class: usize) -> usize {
    debug_assert!(class < CURSORS);
    let word: usize;
    // SAFETY: the linker turns the name into the words' distance from the thread pointer, which every thread has, and
    // `class` is one of them.
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

/// Changes it.
#[inline(always)]
pub fn set_cursor(class: usize, word: usize) {
    debug_assert!(class < CURSORS);
    // SAFETY: as in `cursor`.
    unsafe {
        core::arch::asm!(
            "mov {place}, qword ptr [rip + heaptoll_null_cursors@GOTTPOFF]",
            "mov qword ptr fs:[{place} + 8*{class}], {word}",
            place = out(reg) _,
            class = in(reg) class,
            word = in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}
