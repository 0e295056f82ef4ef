//! Every `operator new` and `operator delete`, over the next malloc family.
//!
//! A manager that brings its own operators would otherwise be reached past this layer. When memory runs out, C++
//! wants the new-handler called and `std::bad_alloc` thrown, which is the C++ runtime's business: the call is handed,
//! as a jump that leaves no frame of ours to unwind, to the next object's operator of the same name, which tries
//! again, calls the handler and throws. So nothing of libstdc++ is linked in, and C programs need none.

use core::arch::naked_asm;
use core::ffi::{CStr, c_void};
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::{family, forward};

use crate::WRITER;
use crate::c_family::{asked, gave_back};

fn counted(size: usize, block: *mut c_void) -> *mut c_void {
    WRITER.slot().new_calls.fetch_add(1, Relaxed);
    asked(size, !block.is_null());
    block
}

extern "C" fn plain(size: usize) -> *mut c_void {
    // C++ wants a distinct block for size 0, where C allows null.
    counted(size, forward::malloc(size.max(1)))
}

extern "C" fn aligned(size: usize, align: usize) -> *mut c_void {
    let mut block = core::ptr::null_mut();
    // SAFETY: `block` is a valid place.
    let code = unsafe { forward::posix_memalign(&mut block, align.max(size_of::<usize>()), size.max(1)) };
    counted(size, if code == 0 { block } else { core::ptr::null_mut() })
}

/// The next operator of this name, for the call that failed.
fn successor(name: &CStr) -> *mut c_void {
    match family::symbol(name) {
        Some(operator) => operator,
        None => {
            family::fatal(c"heaptoll: operator new failed and no C++ runtime is loaded to throw bad_alloc\n")
        }
    }
}

/// Allocates by `$allocate`; when that gives null, restores the arguments and jumps to the next `$name`.
macro_rules! operator_new {
    ($($name:ident $allocate:ident $text:literal),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name() {
            extern "C" fn next_operator() -> *mut c_void {
                successor($text)
            }
            // Three pushes leave the stack aligned to 16 for the calls, and hold all arguments an operator new has.
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                "push rdi", "push rsi", "push rdx",
                "call {allocate}",
                "test rax, rax",
                "jz 2f",
                "add rsp, 24",
                "ret",
                "2:",
                "call {next_operator}",
                "pop rdx", "pop rsi", "pop rdi",
                "jmp rax",
                allocate = sym $allocate, next_operator = sym next_operator,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                "stp x29, x30, [sp, #-48]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {allocate}",
                "cbz x0, 2f",
                "ldp x29, x30, [sp], #48",
                "ret",
                "2:",
                "bl {next_operator}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldr x2, [sp, #32]",
                "ldp x29, x30, [sp], #48",
                "br x16",
                allocate = sym $allocate, next_operator = sym next_operator,
            );
        }
    )* };
}

operator_new! {
    _Znwm plain c"_Znwm",
    _Znam plain c"_Znam",
    _ZnwmRKSt9nothrow_t plain c"_ZnwmRKSt9nothrow_t",
    _ZnamRKSt9nothrow_t plain c"_ZnamRKSt9nothrow_t",
    _ZnwmSt11align_val_t aligned c"_ZnwmSt11align_val_t",
    _ZnamSt11align_val_t aligned c"_ZnamSt11align_val_t",
    _ZnwmSt11align_val_tRKSt9nothrow_t aligned c"_ZnwmSt11align_val_tRKSt9nothrow_t",
    _ZnamSt11align_val_tRKSt9nothrow_t aligned c"_ZnamSt11align_val_tRKSt9nothrow_t",
}

/// All deletes are one: the block alone says all that `free` needs.
macro_rules! operator_delete {
    ($($name:ident),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name(block: *mut c_void) {
            if !block.is_null() {
                WRITER.slot().delete_calls.fetch_add(1, Relaxed);
            }
            gave_back(block);
            // SAFETY: blocks of operator new come from the next malloc family, as free's do.
            unsafe { forward::free(block) }
        }
    )* };
}

operator_delete! {
    _ZdlPv, _ZdaPv,
    _ZdlPvm, _ZdaPvm,
    _ZdlPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t,
    _ZdlPvSt11align_val_t, _ZdaPvSt11align_val_t,
    _ZdlPvmSt11align_val_t, _ZdaPvmSt11align_val_t,
    _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_tRKSt9nothrow_t,
}
