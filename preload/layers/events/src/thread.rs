//! The state of a thread: its next record, and when its request began.

use core::ptr;

use heaptoll_event_log::layout::RequestRecord;
use heaptoll_runtime::thread_word;

thread_word! {
    /// A [`Thread`].
    STATE: "heaptoll_events_thread"[8]
}

/// The state of one thread. All zero in a new thread.
#[repr(C)]
pub struct Thread {
    /// When the request began, in ticks; 0: there is none.
    pub started: u64,
    /// Processor time of the thread by then, ns, where it is recorded.
    pub cpu_started: u64,
    /// The record that it will fill in.
    pub next: *mut RequestRecord,
    /// The end of the chunk.
    pub end: *mut RequestRecord,
    /// The process for which the chunk was claimed: its entry's number plus one. It differs after a fork.
    pub process: u32,
    /// The kernel's number of the thread.
    pub number: u32,
}

const _: () = assert!(size_of::<Thread>() <= 64 && align_of::<Thread>() <= 64);

/// The state of the calling thread.
#[inline(always)]
pub fn current() -> *mut Thread {
    STATE::place().cast()
}

impl Thread {
    /// Moves to the record after `from`, which is written, unless a signal handler has moved on meanwhile, perhaps to
    /// another chunk: then the handler's position stays. One instruction, which no handler can interrupt; other threads
    /// do not write here, so it needs no bus lock.
    #[inline(always)]
    pub fn advance(&mut self, from: *mut RequestRecord) {
        // SAFETY: the instruction compares and writes `self.next`, to which only this thread and its handlers write.
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
    pub const NONE: Thread = Thread {
        started: 0,
        cpu_started: 0,
        next: ptr::null_mut(),
        end: ptr::null_mut(),
        process: 0,
        number: 0,
    };
}
