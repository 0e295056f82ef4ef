//! The registers of a thread: as the kernel saved them when it delivered the signal, or as the caller of the collector
//! has them.

use core::arch::asm;
use core::ops::Range;

use heaptoll_assertions::assert_internal;

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
    /// The general registers, the stack pointer among them.
    pub general: [usize; COUNT],
    /// The stack pointer.
    pub stack_pointer: usize,
    /// The thread pointer; it lies at the upper end of the stack that the C library made for the thread. 0: unknown.
    pub thread_pointer: usize,
    /// Where the vector registers are saved. A memmove that overlaps may hold pointers nowhere else.
    pub vector: Range<usize>,
}

impl Registers {
    pub const fn new() -> Registers {
        Registers { general: [0; COUNT], stack_pointer: 0, thread_pointer: 0, vector: 0..0 }
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
        registers.thread_pointer = thread_pointer();
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

    /// Those of the calling function that its caller may have pointers in: a call preserves them, and no others.
    #[inline(always)]
    pub fn spill(&mut self) {
        // SAFETY: reads registers, and writes seven words to the array, which has `COUNT`.
        unsafe {
            asm!(
                "mov [{to}], rbx",
                "mov [{to} + 8], rbp",
                "mov [{to} + 16], r12",
                "mov [{to} + 24], r13",
                "mov [{to} + 32], r14",
                "mov [{to} + 40], r15",
                "mov [{to} + 48], rsp",
                to = in(reg) self.general.as_mut_ptr(),
                options(nostack, preserves_flags),
            );
        }
        self.stack_pointer = self.general[6];
        assert_internal!(self.stack_pointer.is_multiple_of(8), "a stack pointer is a multiple of a word");
        self.thread_pointer = thread_pointer();
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

/// The thread pointer, read from the kernel: a thread that was made without one must not fault here.
fn thread_pointer() -> usize {
    const ARCH_GET_FS: usize = 0x1003;
    let mut pointer = 0_usize;
    // SAFETY: the kernel writes to `pointer` alone.
    let _ = unsafe {
        crate::kernel::call(libc::SYS_arch_prctl, [ARCH_GET_FS, &raw mut pointer as usize, 0, 0, 0, 0])
    };
    pointer
}
