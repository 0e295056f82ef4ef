//! What a thread keeps: where its next record goes, and when its request began.
//!
//! By hand, in the model "initial exec" of the ELF TLS specification: the place's distance from the thread pointer is
//! fixed when the object is loaded, which a preloaded one is from the start, and finding it is two instructions.
//! (`thread_local!` goes through `__tls_get_addr`, which may allocate.)

use core::ptr;

use heaptoll_events::layout::RequestRecord;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the events layer knows the thread-local storage of Linux on x86-64 only");

core::arch::global_asm!(
    ".pushsection .tbss.heaptoll_events_thread,\"awT\",@nobits",
    ".p2align 6",
    ".hidden heaptoll_events_thread",
    ".globl heaptoll_events_thread",
    ".type heaptoll_events_thread,@object",
    ".size heaptoll_events_thread,64",
    "heaptoll_events_thread:",
    ".zero 64",
    ".popsection",
);

/// One thread's. All zero in a new thread.
#[repr(C)]
pub struct Thread {
    /// When the request began, in ticks; 0: there is none.
    pub started: u64,
    /// Where its record goes.
    pub next: *mut RequestRecord,
    /// The end of the chunk.
    pub end: *mut RequestRecord,
    /// The process that the chunk was claimed for: its entry's number, and 1. After a fork that is another.
    pub process: u32,
    /// The kernel's number of the thread.
    pub number: u32,
}

const _: () = assert!(size_of::<Thread>() <= 64);

/// The calling thread's.
#[inline(always)]
pub fn current() -> *mut Thread {
    let address: *mut Thread;
    // SAFETY: the linker turns the name into the place's distance from the thread pointer, which every thread has, and
    // whose first word is itself.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + heaptoll_events_thread@GOTTPOFF]",
            out(reg) address,
            options(pure, readonly, nostack),
        );
    }
    address
}

impl Thread {
    /// The record at `from` is written: the next goes behind it. Unless a signal handler has gone on meanwhile, perhaps to
    /// another chunk: then the place is the handler's. One instruction, which no handler comes in the middle of; other
    /// threads do not write here, so that the bus need not be locked for it.
    #[inline(always)]
    pub fn advance(&mut self, from: *mut RequestRecord) {
        // SAFETY: compares and writes a word of the thread's own.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{place}], {to}",
                place = in(reg) &raw mut self.next,
                to = in(reg) from.wrapping_add(1),
                inout("rax") from => _,
                options(nostack),
            );
        }
    }

    /// Without a chunk and without a request.
    pub const NONE: Thread =
        Thread { started: 0, next: ptr::null_mut(), end: ptr::null_mut(), process: 0, number: 0 };
}
