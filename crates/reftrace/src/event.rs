//! What happens between references, as the decoder yields it.

use crate::numbered::numbered;
use crate::routine::Routine;
use crate::word::{Place, Text};

numbered! {
    /// Whose code makes a reference or executes an instruction.
    #[derive(Default)]
    pub enum Owner {
        /// The program: all code not below, including signal handlers that interrupt a routine.
        #[default]
        Program = 0 => "program",
        /// A routine of the malloc family, from its first instruction to its return, without collections.
        Allocator = 1 => "allocator",
        /// A collection that the manager announced, on the thread that runs it; and threads that a manager started.
        Collector = 2 => "collector",
    }
}

/// A thread's counters since it began, or a difference of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// Instructions.
    pub instructions: u64,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

impl Clock {
    /// What was added since `earlier`.
    pub fn since(self, earlier: Clock) -> Clock {
        Clock {
            instructions: self.instructions.saturating_sub(earlier.instructions),
            loads: self.loads.saturating_sub(earlier.loads),
            stores: self.stores.saturating_sub(earlier.stores),
        }
    }

    /// The sum.
    pub fn plus(self, other: Clock) -> Clock {
        Clock {
            instructions: self.instructions.saturating_add(other.instructions),
            loads: self.loads.saturating_add(other.loads),
            stores: self.stores.saturating_add(other.stores),
        }
    }
}

/// What made a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It existed when the program began.
    Start,
    /// `mmap`.
    Mmap,
    /// `brk`.
    Brk,
    /// `mremap`.
    Mremap,
    /// The growth of a stack.
    Stack,
}

/// One event, of the running thread unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// Another thread runs from here on.
    Thread { thread: u32 },
    /// A thread was started; `manager` if code of the manager started it: its work is the collector's.
    ThreadStart { thread: u32, parent: u32, manager: bool },
    /// A thread has ended.
    ThreadEnd { thread: u32, clock: Clock },
    /// A routine was entered, from outside of all routines. `family` is 0 for that of C, else the number that the names
    /// of the routines were given with; the arguments are in the order of C. `site` is 0 if call sites were not
    /// requested.
    Enter { routine: Routine, family: u8, clock: Clock, arguments: [u64; 3], site: u32 },
    /// It returned. `cost` is inclusive, without signal handlers; `collector` is the part of it that collections took.
    /// `served_by` is another family, the first of which it called a routine.
    Leave {
        routine: Routine,
        family: u8,
        clock: Clock,
        arguments: [u64; 3],
        site: u32,
        result: u64,
        cost: Clock,
        collector: Clock,
        served_by: Option<u8>,
    },
    /// It was left by `longjmp` or the like.
    Abandon { routine: Routine, clock: Clock, cost: Clock },
    /// The manager announced an event (`heaptoll_event_kind` of include/heaptoll.h).
    Announced { kind: u32, value: u64, clock: Clock },
    /// Memory was mapped; protection bits: 1 read, 2 write, 4 execute.
    Map { address: u64, length: u64, protection: u8, origin: Origin },
    /// Memory was unmapped.
    Unmap { address: u64, length: u64 },
    /// Its protection changed.
    Protect { address: u64, length: u64, protection: u8 },
    /// The kernel reads or writes memory in a system call of `owner`.
    Kernel { owner: Owner, address: u64, length: u64, store: bool },
    /// A system call failed in a way in which it would not fail in a native run.
    Refused { syscall: u32, errno: u32 },
    /// The frames of a call site, innermost first: return addresses.
    Site { site: u32, frames: &'a [u64] },
    /// A text; see [`Text`].
    Text { what: Text, word: u64, bytes: &'a [u8] },
    /// The last store wrote this pointer into the range of the heap, to the aligned word of this number of those that it
    /// wrote to.
    Pointer { value: u64, word: u8 },
    /// The kernel wrote a pointer into the range of the heap to this aligned word.
    WordAt { address: u64, value: u64 },
    /// A root point begins or ends.
    Roots { begin: bool },
    /// A word of a root point that may be a pointer.
    Root { value: u64, place: Place },
    /// The program marks that a request of the running thread begins or ends.
    Request { begin: bool },
    /// `exit` begins: handlers and destructors follow.
    Exit,
    /// By the tracer's clock, which instructions drive, so many ns passed in a wait.
    Waited { ns: u64 },
    /// A child process was started, which has a stream of its own.
    Fork { child: u32 },
    /// The program's `main` begins, with what each owner has executed before, by number of owner: the loader's and the
    /// constructors' work is the program's.
    Main { before: [Clock; 3] },
    /// The process image is replaced by another.
    Exec { clock: Clock },
    /// The process has ended.
    End { status: i32, clock: Clock },
}
