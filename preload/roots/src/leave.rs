//! Leaving the signal's handler without `rt_sigreturn`.
//!
//! When a signal interrupts a call that waits for a time, the kernel keeps the end of the wait, and `restart_syscall`
//! continues it. The kernel forgets it as soon as any handler returns, since the call then ends with `EINTR`. So the
//! handler that stops threads does what the kernel would do, restores mask and registers, and jumps. Any handler of the
//! program's that runs afterwards ends the call, as it should.
//!
//! Signals arrive already in the few instructions between the mask and the jump. The stack pointer leads to the
//! [`Exit`] there, which stays as it is, so that a second stop only begins again.

use core::arch::{asm, naked_asm};
use core::mem::offset_of;

use heaptoll_assertions::assert_internal;

use crate::registers::Extended;

/// Flag of an alternate stack which the kernel puts out of use while a handler runs on it.
const AUTODISARM: i32 = 1 << 31;

/// What a thread continues with. It lies above the stack pointer.
#[repr(C)]
struct Exit {
    r8: usize,
    r9: usize,
    r10: usize,
    r12: usize,
    r13: usize,
    r14: usize,
    r15: usize,
    rdi: usize,
    rsi: usize,
    rbp: usize,
    rbx: usize,
    rdx: usize,
    rax: usize,
    rsp: usize,
    /// Of a `syscall` instruction, which overwrites the two registers that are not here.
    rip: usize,
    flags: usize,
    /// Signals that are blocked.
    mask: u64,
    /// The saved vector registers, and which of their parts there are.
    vector: usize,
    parts: u64,
}

unsafe extern "C" {
    /// The first instruction before which signals arrive.
    static heaptoll_roots_open: u8;
    /// The last, when all registers are the program's.
    static heaptoll_roots_jump: u8;
}

/// The kernel's number of `rt_sigprocmask`, and its command to set the mask: both are operands of instructions.
const _: () = {
    assert!(libc::SYS_rt_sigprocmask == 14 && libc::SIG_SETMASK == 2);
    // The flags are popped, and the stack pointer goes back by what lies before them and by the word popped.
    assert!(
        offset_of!(Exit, flags) == 15 * 8 && offset_of!(Exit, mask) == 16 * 8 && size_of::<Exit>() == 19 * 8
    );
};

/// Continues with the state in `exit`. Flags come first: nothing after changes them.
#[unsafe(naked)]
unsafe extern "C" fn jump(exit: *const Exit) -> ! {
    naked_asm!(
        "lea rsp, [rdi + {flags}]",
        "popfq",
        "lea rsp, [rsp - {flags} - 8]",
        "mov rdi, [rsp + {vector}]",
        "mov eax, [rsp + {parts}]",
        "mov edx, [rsp + {parts} + 4]",
        "xrstor64 [rdi]",
        "mov r8, [rsp + {r8}]",
        "mov r9, [rsp + {r9}]",
        "mov r12, [rsp + {r12}]",
        "mov r13, [rsp + {r13}]",
        "mov r14, [rsp + {r14}]",
        "mov r15, [rsp + {r15}]",
        "mov rbp, [rsp + {rbp}]",
        "mov rbx, [rsp + {rbx}]",
        "mov eax, 14",
        "mov edi, 2",
        "lea rsi, [rsp + {mask}]",
        "mov edx, 0",
        "mov r10d, 8",
        "syscall",
        ".globl heaptoll_roots_open",
        ".hidden heaptoll_roots_open",
        "heaptoll_roots_open:",
        "mov r10, [rsp + {r10}]",
        "mov rdi, [rsp + {rdi}]",
        "mov rsi, [rsp + {rsi}]",
        "mov rdx, [rsp + {rdx}]",
        "mov rax, [rsp + {rax}]",
        "mov rcx, [rsp + {rip}]",
        "mov rsp, [rsp + {rsp}]",
        ".globl heaptoll_roots_jump",
        ".hidden heaptoll_roots_jump",
        "heaptoll_roots_jump:",
        "jmp rcx",
        r8 = const offset_of!(Exit, r8),
        r9 = const offset_of!(Exit, r9),
        r10 = const offset_of!(Exit, r10),
        r12 = const offset_of!(Exit, r12),
        r13 = const offset_of!(Exit, r13),
        r14 = const offset_of!(Exit, r14),
        r15 = const offset_of!(Exit, r15),
        rdi = const offset_of!(Exit, rdi),
        rsi = const offset_of!(Exit, rsi),
        rbp = const offset_of!(Exit, rbp),
        rbx = const offset_of!(Exit, rbx),
        rdx = const offset_of!(Exit, rdx),
        rax = const offset_of!(Exit, rax),
        rsp = const offset_of!(Exit, rsp),
        rip = const offset_of!(Exit, rip),
        flags = const offset_of!(Exit, flags),
        mask = const offset_of!(Exit, mask),
        vector = const offset_of!(Exit, vector),
        parts = const offset_of!(Exit, parts),
    )
}

/// What a thread continues with instead of what its context holds.
#[derive(Debug, Clone, Copy)]
pub struct NextCall {
    /// Where the `syscall` instruction is.
    pub at: usize,
    pub number: usize,
}

/// Leaves the handler for a system call. Returns if this processor or this thread needs `rt_sigreturn`.
///
/// # Safety
/// The context is that of a handler which is running, blocks all signals, and owns nothing that needs to be dropped.
pub unsafe fn leave(context: &libc::ucontext_t, call: NextCall) {
    // SAFETY: `context` is that of a running handler, which this function requires.
    let Some(Extended { parts, .. }) = (unsafe { Extended::of(context) }) else { return };
    if context.uc_stack.ss_flags & AUTODISARM != 0 || has_shadow_stack() {
        return;
    }
    let register = |register: libc::c_int| context.uc_mcontext.gregs[register as usize] as usize;
    let exit = Exit {
        r8: register(libc::REG_R8),
        r9: register(libc::REG_R9),
        r10: register(libc::REG_R10),
        r12: register(libc::REG_R12),
        r13: register(libc::REG_R13),
        r14: register(libc::REG_R14),
        r15: register(libc::REG_R15),
        rdi: register(libc::REG_RDI),
        rsi: register(libc::REG_RSI),
        rbp: register(libc::REG_RBP),
        rbx: register(libc::REG_RBX),
        rdx: register(libc::REG_RDX),
        rax: call.number,
        rsp: register(libc::REG_RSP),
        rip: call.at,
        flags: register(libc::REG_EFL),
        mask: mask(context),
        vector: context.uc_mcontext.fpregs as usize,
        parts,
    };
    assert_internal!(
        exit.vector.is_multiple_of(64) && exit.vector != 0,
        "the saved vector registers are aligned as their instruction requires"
    );
    assert_internal!(exit.rsp != 0 && exit.rip != 0, "a thread continues with a stack and an instruction");
    // SAFETY: the registers are those of the thread where it was interrupted; the frame with the vector registers lies
    // further up on this stack.
    unsafe { jump(&exit) }
}

/// If a stop has interrupted the leaving itself: goes on with it.
///
/// # Safety
/// The context is that of a handler which is running, blocks all signals, and owns nothing that needs to be dropped.
pub unsafe fn resume(context: &mut libc::ucontext_t) {
    let [open, end] =
        [&raw const heaptoll_roots_open, &raw const heaptoll_roots_jump].map(|label| label as i64);
    let registers = &mut context.uc_mcontext.gregs;
    let at = registers[libc::REG_RIP as usize];
    if at == end {
        registers[libc::REG_RIP as usize] = registers[libc::REG_RCX as usize];
    } else if (open..end).contains(&at) {
        // SAFETY: between these instructions the stack pointer leads to the exit, which nothing has changed: this
        // handler's frame lies below it.
        unsafe { jump(registers[libc::REG_RSP as usize] as *const Exit) }
    }
}

/// The signals that the interrupted thread blocks. The kernel's set is the first word of the C library's.
pub fn mask(context: &libc::ucontext_t) -> u64 {
    // SAFETY: the C library's set is longer than a word, and has its alignment.
    unsafe { (&raw const context.uc_sigmask).cast::<u64>().read() }
}

/// Whether returns are checked against a stack of their own, which `rt_sigreturn` keeps right.
fn has_shadow_stack() -> bool {
    let mut pointer = 0_usize;
    // SAFETY: the bytes are `rdsspq rax`, which only writes rax, and does nothing where there is no shadow stack.
    unsafe { asm!(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8", inout("rax") pointer, options(nomem, nostack)) };
    pointer != 0
}
