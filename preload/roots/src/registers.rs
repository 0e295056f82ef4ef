//! The registers of a thread: as the kernel saved them when it delivered the signal, or as the caller of the collector
//! has them.

use core::arch::asm;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};

use heaptoll_assertions::assert_internal;

use crate::own_stack::{SAVED, stack_pointer};
use crate::{kernel, queued_values};

/// General registers kept of a thread.
pub const COUNT: usize = 16;

/// Those that a signal frame holds, but the instruction pointer and the flags.
const GENERAL: [libc::c_int; COUNT] = [
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
    libc::REG_RDI,
    libc::REG_RSI,
    libc::REG_RBP,
    libc::REG_RBX,
    libc::REG_RDX,
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RSP,
];

/// Words more that the kernel holds for a thread, or a register that no instruction of the program reads: the bases of the
/// two segments and the thread's alternate signal stack.
const HELD: usize = 3;

/// Bytes below the stack pointer that a function may use without moving it (System V ABI, x86-64, 3.2.2).
pub const RED_ZONE: usize = 128;

/// Where the frame's floating point state describes itself, and the word by which the description is recognised.
const EXTENDED_AT: usize = 464;
const EXTENDED_MAGIC: u32 = 0x4650_5853;
/// Length of the state without extensions, bytes.
const LEGACY_STATE: usize = 512;

const _: () = {
    assert!(GENERAL[COUNT - 1] == libc::REG_RSP && RED_ZONE.is_multiple_of(8));
    assert!(size_of::<Extended>() == 16 && EXTENDED_AT + size_of::<Extended>() <= LEGACY_STATE);
};

/// The registers of one thread, and where it keeps the others.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Registers {
    /// The general registers, the stack pointer among them, and after them what the kernel holds for the thread.
    pub general: [usize; COUNT + HELD],
    /// The stack pointer.
    pub stack_pointer: usize,
    /// What the frames of the handler that stopped the thread occupy of its stack. They have copies of registers.
    pub handler: Range<usize>,
    /// The thread pointer; it lies at the upper end of the stack that the C library made for the thread. 0: unknown.
    pub thread_pointer: usize,
    /// Where the vector registers are saved. A memmove that overlaps may hold pointers nowhere else.
    pub vector: Range<usize>,
    /// The signals that wait to be unblocked by the thread, or by any; all of them where that is not known.
    pub pending: u64,
}

impl Registers {
    pub const fn new() -> Registers {
        Registers {
            general: [0; COUNT + HELD],
            stack_pointer: 0,
            handler: 0..0,
            thread_pointer: 0,
            vector: 0..0,
            pending: u64::MAX,
        }
    }

    /// Those that a signal interrupted. They are valid until the handler returns.
    ///
    /// # Safety
    /// The context is that of a signal handler which is running.
    #[inline(always)]
    pub unsafe fn interrupted(context: *const libc::ucontext_t) -> Registers {
        // SAFETY: `context` is that of a running handler, which this function requires.
        let context = unsafe { &*context };
        let mut registers = Registers::new();
        for (kept, &register) in registers.general.iter_mut().zip(&GENERAL) {
            *kept = context.uc_mcontext.gregs[register as usize] as usize;
        }
        registers.stack_pointer = context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize;
        let handler = stack_pointer();
        let alternate = context.uc_stack.ss_sp as usize;
        // On an alternate stack the handler's frames are not below what it interrupted.
        if !(alternate..alternate + context.uc_stack.ss_size).contains(&handler)
            && handler + RED_ZONE <= registers.stack_pointer
        {
            registers.handler = handler..(registers.stack_pointer - RED_ZONE) & !7;
        }
        registers.hold(alternate);
        let vector = context.uc_mcontext.fpregs as usize;
        if vector != 0 {
            // SAFETY: `context` is that of a running handler, which this function requires.
            let extended = unsafe { Extended::of(context) }.map_or(0, |extended| extended.size as usize & !7);
            registers.vector = vector..vector + LEGACY_STATE.max(extended);
        }
        assert_internal!(
            registers.general[COUNT - 1] == registers.stack_pointer,
            "the stack pointer is the last of the registers that are kept"
        );
        assert_internal!(
            registers.vector.start.is_multiple_of(8) && registers.vector.end.is_multiple_of(8),
            "saved registers are whole words"
        );
        registers
    }

    /// Those of the calling thread as it has left its stack ([`crate::own_stack`]): a call preserves them, and no others.
    /// `alternate` is where its alternate signal stack begins.
    ///
    /// # Safety
    /// The thread runs on the collector's stack, and `left` is the pointer by which it has left its own.
    pub unsafe fn take_saved(&mut self, left: usize, alternate: usize) {
        // SAFETY: the thread has saved so many words there, which this function requires.
        let saved = unsafe { core::slice::from_raw_parts(left as *const usize, SAVED) };
        self.general[..SAVED].copy_from_slice(saved);
        self.general[SAVED] = left;
        self.stack_pointer = left;
        assert_internal!(self.stack_pointer.is_multiple_of(8), "a stack pointer is a multiple of a word");
        self.hold(alternate);
    }

    /// Records what the kernel holds for the calling thread, whose alternate signal stack begins there.
    #[inline(always)]
    fn hold(&mut self, alternate: usize) {
        let [fs, gs] = segment_bases();
        self.thread_pointer = fs;
        self.general[COUNT..].copy_from_slice(&[fs, gs, alternate]);
        self.pending = if queued_values::are_used() { kernel::pending() } else { u64::MAX };
    }
}

/// The description in the frame's floating point state: the kernel's `struct _fpx_sw_bytes`, as far as it is used.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Extended {
    magic: u32,
    /// Length of the state, bytes.
    size: u32,
    /// The parts of the state, as `xrstor` wants them.
    pub parts: u64,
}

impl Extended {
    /// That of a signal's frame; `None`: this processor has no such state.
    ///
    /// # Safety
    /// The context is that of a signal handler which is running.
    pub unsafe fn of(context: &libc::ucontext_t) -> Option<Extended> {
        let state = context.uc_mcontext.fpregs as usize;
        if state == 0 {
            return None;
        }
        // SAFETY: the state has at least its legacy part, in which the kernel has put this.
        let extended = unsafe { ((state + EXTENDED_AT) as *const Extended).read() };
        (extended.magic == EXTENDED_MAGIC).then_some(extended)
    }
}

/// The bases of the segments FS, which is the thread pointer, and GS; 0: unknown. A thread that was made without a thread
/// pointer must not fault here.
fn segment_bases() -> [usize; 2] {
    if has_base_instructions() {
        let (fs, gs);
        // SAFETY: the kernel has announced the instructions, which read two registers.
        unsafe {
            asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs, out(reg) gs, options(nomem, nostack, preserves_flags));
        }
        return [fs, gs];
    }
    [ARCH_GET_FS, ARCH_GET_GS].map(|command| {
        let mut base = 0_usize;
        // SAFETY: the kernel writes to `base` alone.
        let _ = unsafe { kernel::call(libc::SYS_arch_prctl, [command, &raw mut base as usize, 0, 0, 0, 0]) };
        base
    })
}

/// The kernel's commands of `arch_prctl`.
const ARCH_GET_FS: usize = 0x1003;
const ARCH_GET_GS: usize = 0x1004;

/// Finds out what the handler of a stop needs: a thread that was made without a thread pointer cannot call the C library.
pub fn prepare() {
    let _ = has_base_instructions();
}

/// Whether programs may execute `rdfsbase` and `rdgsbase` (Linux 5.9 and later), found out once.
fn has_base_instructions() -> bool {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    const UNKNOWN: u8 = 2;
    static ANNOUNCED: AtomicU8 = AtomicU8::new(UNKNOWN);
    let known = ANNOUNCED.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known == 1;
    }
    // SAFETY: the function reads what the kernel passed to the process.
    let announced = unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE != 0;
    ANNOUNCED.store(announced.into(), Ordering::Relaxed);
    announced
}
