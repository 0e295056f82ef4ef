//! What `exit` calls: handlers of `atexit` and `on_exit`, destructors of static and thread-local objects.
//!
//! In place of each function, one of [`stubs`] is registered, with the argument unchanged: collectors find objects by it.
//! A stub checks whether the end begins, and jumps to the function; so the function is called as without the layer.

use core::arch::naked_asm;
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::exit_frame;
use super::hook::{Ending, begins};
use crate::family;

/// Stubs, of 12 bytes. Programs have few functions that are registered; further ones are registered as they are.
const STUBS: usize = 1024;
const STUB_BYTES: usize = 12;
/// Each stub's function; 0: the stub is free.
static FUNCTIONS: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];

/// The stubs, one after another.
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    naked_asm!(
        ".rept {count}",
        // The address shows which stub it is. The jump is written as bytes, so that all stubs have one length.
        "lea r11, [rip]",
        ".byte 0xe9",
        ".long 2f - . - 4",
        ".endr",
        "2:",
        "push rdi",
        "push rsi",
        "push r11",
        "mov rdi, r11",
        "lea rsi, [rsp + 24]",
        "call {called}",
        "pop r11",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        count = const STUBS,
        called = sym called,
    )
}

/// A stub was called: returns its function.
unsafe extern "C" fn called(within: usize, stack: *const usize) -> usize {
    // SAFETY: the C library has called a stub, which passes the stack pointer that it was called with.
    if unsafe { exit_frame::is_above(stack) } {
        begins(Ending::Handlers);
    }
    FUNCTIONS[(within - stubs as *const () as usize) / STUB_BYTES].load(Ordering::Acquire)
}

/// The function to register in place of one: the same each time.
fn stub_of(function: usize) -> usize {
    let first = function.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - STUBS.ilog2());
    for number in (first..STUBS).chain(0..first) {
        let stub = stubs as *const () as usize + number * STUB_BYTES;
        match FUNCTIONS[number].compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return stub,
            Err(other) if other == function => return stub,
            Err(_) => {}
        }
    }
    function
}

/// What a registration passes on: the function in place of the program's, and the next function of the name.
#[repr(C)]
pub struct Registration {
    function: usize,
    next: usize,
}

/// The C library has no function of the name.
extern "C" fn refuse() -> c_int {
    -1
}

fn registration(function: usize, name: &CStr, next: &AtomicUsize) -> Registration {
    if next.load(Ordering::Relaxed) == 0 {
        let found = family::symbol(name).map_or(refuse as *const () as usize, |found| found as usize);
        next.store(found, Ordering::Relaxed);
    }
    let function = if function == 0 { 0 } else { stub_of(function) };
    Registration { function, next: next.load(Ordering::Relaxed) }
}

/// `__cxa_atexit`: of `atexit`, and of static objects.
pub extern "C" fn at_exit(function: usize) -> Registration {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    registration(function, c"__cxa_atexit", &NEXT)
}

/// `on_exit`.
pub extern "C" fn on_exit(function: usize) -> Registration {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    registration(function, c"on_exit", &NEXT)
}

/// `__cxa_thread_atexit_impl`: of thread-local objects.
pub extern "C" fn at_thread_exit(function: usize) -> Registration {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    registration(function, c"__cxa_thread_atexit_impl", &NEXT)
}

/// `__libc_start_main`: of the loader's function that calls the destructors of files, which it registers. Called by the
/// program's entry code.
pub extern "C" fn at_start(loader_ends: usize) -> Registration {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    registration(loader_ends, c"__libc_start_main", &NEXT)
}

/// Exports one of the functions that register, as a jump to the next: that sees the program as its caller.
#[macro_export]
macro_rules! export_registration {
    ($name:ident, $registration:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "push rsi",
                "push rdx",
                "sub rsp, 8",
                "call {registration}",
                "mov rdi, rax",
                "mov r11, rdx",
                "add rsp, 8",
                "pop rdx",
                "pop rsi",
                "jmp r11",
                registration = sym $registration,
            )
        }
    };
}

/// Exports `__libc_start_main` in the same way. The loader's function is its sixth argument.
#[macro_export]
macro_rules! export_start {
    () => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn __libc_start_main() {
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "mov rdi, r9",
                "call {registration}",
                "mov r9, rax",
                "mov r11, rdx",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp r11",
                registration = sym $crate::ending::handlers::at_start,
            )
        }
    };
}
