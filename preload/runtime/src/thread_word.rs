//! A thread-local word without std.
//!
//! std's `thread_local!` goes through `__tls_get_addr` in a shared object, which may allocate; `#[thread_local]` is
//! not in stable Rust. So [`thread_word!`] makes the word by hand, in the model "initial exec" of the ELF TLS
//! specification: its distance from the thread pointer is fixed when the object is loaded, and a read is two
//! instructions. The price is that the object must be there from the start, as a preloaded one is.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("thread-local words are known for x86_64 Linux only: add yours to thread_word.rs");

/// The thread pointer: no two threads of a process that live at the same time have the same. The ABI keeps it in the
/// word that it points to.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let word: usize;
    // SAFETY: the ABI gives every thread this word, which is read only.
    unsafe {
        core::arch::asm!("mov {0}, qword ptr fs:[0]", out(reg) word, options(pure, readonly, nostack, preserves_flags));
    };
    word
}

/// A thread-local word of every thread, with what it holds in a new one: an address of a static, or nothing (0).
///
/// ```text
/// thread_word! {
///     /// The thread's cache.
///     pub(crate) CACHE: "heaptoll_example_cache" = EMPTY;
/// }
/// CACHE::get(); CACHE::set(word);
/// ```
///
/// With a number in brackets it is so many words, on cache lines of their own, all 0 in a new thread: `get(index)`,
/// `set(index, word)`, and `place()` for the address of the first.
///
/// The string is the name for the linker, unique in a program image.
#[macro_export]
macro_rules! thread_word {
    ($(#[$about:meta])* $visible:vis $name:ident: $symbol:literal) => {
        core::arch::global_asm!(
            concat!(".pushsection .tbss.", $symbol, ",\"awT\",@nobits"),
            ".p2align 3",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ",8"),
            concat!($symbol, ":"),
            ".zero 8",
            ".popsection",
        );
        $crate::thread_word!(@access $(#[$about])* $visible $name: $symbol);
    };
    ($(#[$about:meta])* $visible:vis $name:ident: $symbol:literal = $initial:path) => {
        core::arch::global_asm!(
            concat!(".pushsection .tdata.", $symbol, ",\"awT\",@progbits"),
            ".p2align 3",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ",8"),
            concat!($symbol, ":"),
            ".quad {initial}",
            ".popsection",
            initial = sym $initial,
        );
        $crate::thread_word!(@access $(#[$about])* $visible $name: $symbol);
    };
    ($(#[$about:meta])* $visible:vis $name:ident: $symbol:literal [$count:literal]) => {
        core::arch::global_asm!(
            concat!(".pushsection .tbss.", $symbol, ",\"awT\",@nobits"),
            ".p2align 6",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ",8*", $count),
            concat!($symbol, ":"),
            concat!(".zero 8*", $count),
            ".popsection",
        );

        $(#[$about])*
        #[allow(non_camel_case_types)]
        $visible struct $name;

        #[allow(dead_code)]
        impl $name {
            /// How many words a thread has.
            $visible const COUNT: usize = $count;

            /// A word of the calling thread.
            ///
            /// # Safety
            /// There are more than `index` words.
            #[inline(always)]
            $visible unsafe fn get(index: usize) -> usize {
                debug_assert!(index < $count);
                let word: usize;
                // SAFETY: the linker turns the name into the words' distance from the thread pointer, which every
                // thread has; by this function's contract the instruction reads one of them.
                unsafe {
                    core::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov {0}, qword ptr fs:[{0} + 8*{1}]",
                        out(reg) word,
                        in(reg) index,
                        options(pure, readonly, nostack, preserves_flags),
                    );
                }
                word
            }

            /// Changes a word of the calling thread.
            ///
            /// # Safety
            /// There are more than `index` words.
            #[inline(always)]
            $visible unsafe fn set(index: usize, word: usize) {
                debug_assert!(index < $count);
                // SAFETY: the linker turns the name into the words' distance from the thread pointer; by this
                // function's contract the instruction writes one of them.
                unsafe {
                    core::arch::asm!(
                        concat!("mov {place}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov qword ptr fs:[{place} + 8*{index}], {word}",
                        place = out(reg) _,
                        index = in(reg) index,
                        word = in(reg) word,
                        options(nostack, preserves_flags),
                    );
                }
            }

            /// The address of the calling thread's words, a multiple of 64.
            #[inline(always)]
            $visible fn place() -> *mut usize {
                let place: *mut usize;
                // SAFETY: the linker turns the name into the words' distance from the thread pointer, which the ABI
                // keeps in the word that it points to; the instructions only read.
                unsafe {
                    core::arch::asm!(
                        "mov {0}, qword ptr fs:[0]",
                        concat!("add {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        out(reg) place,
                        options(pure, readonly, nostack),
                    );
                }
                place
            }
        }
    };
    (@access $(#[$about:meta])* $visible:vis $name:ident: $symbol:literal) => {
        $(#[$about])*
        #[allow(non_camel_case_types)]
        $visible struct $name;

        #[allow(dead_code)]
        impl $name {
            /// The calling thread's word.
            #[inline(always)]
            $visible fn get() -> usize {
                let word: usize;
                // SAFETY: the linker turns the name into the word's distance from the thread pointer, which every
                // thread has.
                unsafe {
                    core::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov {0}, qword ptr fs:[{0}]",
                        out(reg) word,
                        options(pure, readonly, nostack, preserves_flags),
                    );
                }
                word
            }

            /// Changes the calling thread's word.
            #[inline(always)]
            $visible fn set(word: usize) {
                // SAFETY: the linker turns the name into the word's distance from the thread pointer.
                unsafe {
                    core::arch::asm!(
                        concat!("mov {place}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov qword ptr fs:[{place}], {word}",
                        place = out(reg) _,
                        word = in(reg) word,
                        options(nostack, preserves_flags),
                    );
                }
            }
        }
    };
}
