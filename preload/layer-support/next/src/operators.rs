//! Every `operator new` and `operator delete`, over the next malloc family.
//!
//! Calls of a manager's own operators would otherwise bypass this layer. When memory runs out, C++ requires a call of
//! the new-handler and a `std::bad_alloc`, which only the C++ runtime can do: the call continues, as a jump that leaves
//! no frame of ours to unwind, in the next object's operator of the same name, which tries again, calls the handler and
//! throws. So nothing of libstdc++ is linked in, and C programs need none.

use core::ffi::{CStr, c_void};

use crate::watched::{Call, Watch, allocate};
use crate::{family, forward};

pub extern "C" fn plain<W: Watch>(size: usize) -> *mut c_void {
    // C++ requires a distinct block for size 0, where C allows null.
    allocate::<W>(Call::New, size, move || W::forward_malloc(size.max(1)))
}

pub extern "C" fn aligned<W: Watch>(size: usize, align: usize) -> *mut c_void {
    allocate::<W>(Call::AlignedNew { align }, size, move || {
        let mut block = core::ptr::null_mut();
        // SAFETY: `forward::posix_memalign` writes to `block`, a local variable.
        let code = unsafe { forward::posix_memalign(&mut block, align.max(size_of::<usize>()), size.max(1)) };
        if code == 0 { block } else { core::ptr::null_mut() }
    })
}

/// What the code of [`export_operators!`](crate::export_operators) has on the stack, above its own return address, when it
/// calls the functions that allocate: three pushes and the operator's return address.
#[cfg(target_arch = "x86_64")]
pub const CALLER_AT: usize = 4 * 8;

/// The next operator of this name, in which a call that failed continues.
pub fn successor(name: &CStr) -> *mut c_void {
    match family::symbol(name) {
        Some(operator) => operator,
        None => {
            family::fatal(c"heaptoll: operator new failed and no C++ runtime is loaded to throw bad_alloc\n")
        }
    }
}

/// Exports every `operator new` and `operator delete`: watched by a type that implements [`Watch`], or over functions
/// of the layer's own, `extern "C" fn(size)`, `extern "C" fn(size, align)` and `unsafe fn(block, operator: bool)`, of
/// which the first two return null when there is no memory.
#[macro_export]
macro_rules! export_operators {
    ($watch:ty) => {
        $crate::export_operators! {
            new = $crate::operators::plain::<$watch>,
            aligned = $crate::operators::aligned::<$watch>,
            delete = $crate::watched::free::<$watch>,
        }
    };
    (new = $plain:path, aligned = $aligned:path, delete = $delete:path $(,)?) => {
        $crate::export_operators! { @new $plain;
            _Znwm c"_Znwm",
            _Znam c"_Znam",
            _ZnwmRKSt9nothrow_t c"_ZnwmRKSt9nothrow_t",
            _ZnamRKSt9nothrow_t c"_ZnamRKSt9nothrow_t",
        }
        $crate::export_operators! { @new $aligned;
            _ZnwmSt11align_val_t c"_ZnwmSt11align_val_t",
            _ZnamSt11align_val_t c"_ZnamSt11align_val_t",
            _ZnwmSt11align_val_tRKSt9nothrow_t c"_ZnwmSt11align_val_tRKSt9nothrow_t",
            _ZnamSt11align_val_tRKSt9nothrow_t c"_ZnamSt11align_val_tRKSt9nothrow_t",
        }
        $crate::export_operators! { @delete $delete;
            _ZdlPv, _ZdaPv,
            _ZdlPvm, _ZdaPvm,
            _ZdlPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t,
            _ZdlPvSt11align_val_t, _ZdaPvSt11align_val_t,
            _ZdlPvmSt11align_val_t, _ZdaPvmSt11align_val_t,
            _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_tRKSt9nothrow_t,
        }
    };
    // Allocates; when that returns null, restores the arguments and jumps to the next operator of the name.
    (@new $allocate:path; $($name:ident $text:literal),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name() {
            extern "C" fn next_operator() -> *mut core::ffi::c_void {
                $crate::operators::successor($text)
            }
            // Three pushes leave the stack aligned to 16 for the calls, and save all arguments that an operator new
            // has. The unwind tables are for code that walks the program's stack from within the call.
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                "push rsi",
                "push rdx",
                ".cfi_def_cfa_offset 32",
                "call {allocate}",
                "test rax, rax",
                "jz 2f",
                "add rsp, 24",
                ".cfi_def_cfa_offset 8",
                "ret",
                "2:",
                ".cfi_def_cfa_offset 32",
                "call {next_operator}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_def_cfa_offset 8",
                "jmp rax",
                ".cfi_endproc",
                allocate = sym $allocate, next_operator = sym next_operator,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-48]!",
                ".cfi_def_cfa_offset 48",
                ".cfi_offset x29, -48",
                ".cfi_offset x30, -40",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                "bl {allocate}",
                "cbz x0, 2f",
                ".cfi_remember_state",
                "ldp x29, x30, [sp], #48",
                ".cfi_def_cfa_offset 0",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "ret",
                "2:",
                ".cfi_restore_state",
                "bl {next_operator}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldr x2, [sp, #32]",
                "ldp x29, x30, [sp], #48",
                ".cfi_def_cfa_offset 0",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "br x16",
                ".cfi_endproc",
                allocate = sym $allocate, next_operator = sym next_operator,
            );
        }
    )* };
    // All deletes are the same: `free` needs the block alone.
    (@delete $delete:path; $($name:ident),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name(block: *mut core::ffi::c_void) {
            // SAFETY: C++ requires a live block of operator new or null; operator new above allocates from the same
            // family.
            unsafe { $delete(block, true) }
        }
    )* };
}
