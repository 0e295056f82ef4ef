//! The log: one line for each collection, for tuning a program and for scripts.
//!
//! A line consists of `key=value` pairs with the unit at the end of the key. One write appends it to the file, so the
//! lines of several processes do not mix. `docs/reference/tithe-settings.md` explains every key.

use core::ffi::{c_char, c_int};
use core::mem::ManuallyDrop;

use heaptoll_assertions::assert_internal;
use heaptoll_roots::{File, Held, RootsError, StopError, UnstoppedThread, Untracked};
use heaptoll_runtime::AbandonCause;

use crate::generations::Generation;

/// The file to which the lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sink(Held);

impl Sink {
    /// Opens a file for appending, created if need be (mode 0666 less the umask); `-` is standard error as it is now.
    ///
    /// # Errors
    /// The system's error number.
    pub fn open(path: &[u8]) -> Result<Sink, c_int> {
        let file = if path == b"-" {
            // A copy: standard error is the program's to close.
            ManuallyDrop::new(File::of(2)).duplicate(10)
        } else {
            let mut name = [0u8; libc::PATH_MAX as usize];
            if path.is_empty() {
                return Err(libc::ENOENT);
            }
            if path.len() >= name.len() {
                return Err(libc::ENAMETOOLONG);
            }
            name[..path.len()].copy_from_slice(path);
            // Without O_NONBLOCK, opening a pipe without a reader would block the process before it has begun.
            let flags = libc::O_WRONLY
                | libc::O_APPEND
                | libc::O_CREAT
                | libc::O_CLOEXEC
                | libc::O_NOCTTY
                | libc::O_NONBLOCK;
            // SAFETY: `name` ends with a zero.
            let file = unsafe { libc::open(name.as_ptr().cast::<c_char>(), flags, 0o666) };
            if file < 0 {
                return Err(errno());
            }
            // SAFETY: the descriptor was opened above; the call takes no pointers.
            unsafe { libc::fcntl(file, libc::F_SETFL, libc::O_APPEND) };
            Ok(File::of(file as usize))
        };
        file.and_then(Held::new).map(Sink).map_err(|error| error.0)
    }

    /// Writes a line at once. False when it could not be written whole, or when the program has closed the descriptor
    /// or replaced its file: then nothing is written, since that file is the program's. errno is kept.
    pub fn write(&self, line: &[u8]) -> bool {
        let before = errno();
        let written = self.0.verified().is_some()
            && loop {
                // SAFETY: the kernel reads `line.len()` bytes of `line`.
                let count = unsafe { libc::write(self.0.number(), line.as_ptr().cast(), line.len()) };
                if count >= 0 || errno() != libc::EINTR {
                    break count == line.len() as isize;
                }
            };
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = before };
        written
    }
}

fn errno() -> c_int {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() }
}

/// Why a collection was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The budget was exhausted.
    Budget,
    /// The system gave no more memory.
    Memory,
    /// The program requested it.
    Called,
}

impl Reason {
    /// Its name in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Budget => "budget",
            Reason::Memory => "memory",
            Reason::Called => "called",
        }
    }
}

/// A finished collection. Times are in ns, sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The number of the collection, from 1.
    pub number: u64,
    /// Why it was started.
    pub reason: Reason,
    /// Bytes in allocated blocks, before.
    pub heap_before: usize,
    /// Bytes of address space in blocks and free space, after.
    pub heap_after: usize,
    /// Bytes in blocks found live.
    pub live: usize,
    /// Bytes in blocks found dead.
    pub reclaimed: usize,
    /// Bytes held only by ambiguous words of registers, stacks, statics and other mappings; `None` when they were not
    /// counted.
    pub ambiguous: Option<usize>,
    /// What was read, where generations are on.
    pub generation: Option<Generation>,
    /// Where it was incremental: its increments.
    pub increments: Option<IncrementTotals>,
    /// Bytes in old blocks, and of them those that were read.
    pub old: usize,
    pub reread: usize,
    /// In mode `guard`: what became of freed blocks.
    pub held: Option<HeldTotals>,
    /// Bytes of roots that were scanned.
    pub roots_bytes: usize,
    /// The budget until the next collection.
    pub budget: usize,
    /// Threads of the process, the collecting one included.
    pub threads: usize,
    /// Threads that marked.
    pub markers: usize,
    /// From before the locks are taken until the last thread had stopped.
    pub stop_ns: u64,
    /// Always 0: the roots are read while marking.
    pub roots_ns: u64,
    /// Marking, the reading of the roots included.
    pub mark_ns: u64,
    /// Sweeping, as far as it was done while the threads were stopped.
    pub sweep_ns: u64,
    /// From before the locks are taken until all threads were resumed.
    pub pause_ns: u64,
}

/// Freed blocks that waited and were kept, and what the program did wrong with such blocks since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldTotals {
    pub waiting: usize,
    pub kept: usize,
    pub kept_blocks: usize,
    pub late_writes: u64,
    pub double_frees: u64,
}

/// The increments of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncrementTotals {
    /// How many there were.
    pub count: u32,
    /// The longest pause of one, and all of them, ns.
    pub longest_ns: u64,
    pub total_ns: u64,
}

/// Why a collection was abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    pub cause: AbandonCause,
    /// The thread that did not stop, if that is the cause.
    pub thread: Option<UnstoppedThread>,
    /// Whether the next collection may succeed, and this one took little time.
    pub passes: bool,
}

impl From<AbandonCause> for Cause {
    fn from(cause: AbandonCause) -> Cause {
        Cause { cause, thread: None, passes: cause == AbandonCause::Descriptors }
    }
}

impl From<StopError> for Cause {
    fn from(error: StopError) -> Cause {
        let thread = if let StopError::Thread(thread) | StopError::Vfork(thread) = error {
            Some(thread)
        } else {
            None
        };
        let passes = matches!(error, StopError::Vfork(_) | StopError::NoDescriptor);
        Cause { cause: error.cause(), thread, passes }
    }
}

impl From<RootsError> for Cause {
    fn from(error: RootsError) -> Cause {
        error.cause().into()
    }
}

/// An abandoned collection: the heap grows instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abandoned {
    /// How many were abandoned so far, this one included.
    pub number: u64,
    /// Why it was started.
    pub reason: Reason,
    /// Why it was abandoned.
    pub cause: Cause,
    /// Bytes in allocated blocks.
    pub heap_before: usize,
    /// From before the locks are taken until it was abandoned, ns.
    pub waited_ns: u64,
}

/// Writes a collection's line. False as for [`Sink::write`].
pub fn write(sink: &Sink, report: &Report) -> bool {
    sink.write(report.line(process()).bytes())
}

/// Writes the line of an abandoned collection. False as for [`Sink::write`].
pub fn write_abandoned(sink: &Sink, abandoned: &Abandoned) -> bool {
    sink.write(abandoned.line(process()).bytes())
}

/// Writes that all collections are full, and why. False as for [`Sink::write`].
pub fn write_untracked(sink: &Sink, cause: Untracked) -> bool {
    sink.write(untracked(process(), cause).bytes())
}

/// Writes that the program uses a place which collections cannot read. False as for [`Sink::write`].
pub fn write_unread(sink: &Sink, place: &str) -> bool {
    let mut line = LogLine::new();
    line.number("pid", process());
    line.text("unread", place);
    sink.write(line.end().bytes())
}

/// Writes that a block was written after its free. False as for [`Sink::write`].
pub fn write_late(sink: &Sink, address: usize) -> bool {
    let mut line = LogLine::new();
    line.number("pid", process());
    line.address("written_after_free", address);
    sink.write(line.end().bytes())
}

fn untracked(pid: u64, cause: Untracked) -> LogLine {
    let mut line = LogLine::new();
    line.number("pid", pid);
    line.text("generations", "off");
    let (cause, error) = match cause {
        Untracked::Kernel(error) => ("kernel", error.unsigned_abs()),
        Untracked::Filtered => ("filter", 0),
        Untracked::Closed => ("closed", 0),
        Untracked::Mapping => ("mapping", 0),
        Untracked::Pinned => ("pinned", 0),
        Untracked::Proc => ("proc", 0),
        Untracked::NoMemory => ("memory", 0),
    };
    line.text("cause", cause);
    line.number("errno", u64::from(error));
    line.end()
}

fn process() -> u64 {
    // SAFETY: getpid takes no pointers and cannot fail.
    unsafe { libc::getpid() as u64 }
}

impl Report {
    fn line(&self, pid: u64) -> LogLine {
        let mut line = LogLine::new();
        line.number("pid", pid);
        line.number("collection", self.number);
        line.text("reason", self.reason.as_str());
        line.number("heap_before_bytes", self.heap_before as u64);
        line.number("heap_after_bytes", self.heap_after as u64);
        line.number("live_bytes", self.live as u64);
        line.number("reclaimed_bytes", self.reclaimed as u64);
        if let Some(ambiguous) = self.ambiguous {
            line.number("ambiguous_bytes", ambiguous as u64);
        }
        if let Some(generation) = self.generation {
            line.text("generation", generation.as_str());
            line.number("old_bytes", self.old as u64);
            line.number("reread_bytes", self.reread as u64);
        }
        if let Some(steps) = self.increments {
            line.number("increments", u64::from(steps.count));
            line.microseconds("longest_us", steps.longest_ns);
            line.microseconds("increments_us", steps.total_ns);
        }
        if let Some(held) = self.held {
            line.number("waiting_bytes", held.waiting as u64);
            line.number("kept_bytes", held.kept as u64);
            line.number("kept_blocks", held.kept_blocks as u64);
            line.number("late_writes", held.late_writes);
            line.number("double_frees", held.double_frees);
        }
        line.number("roots_bytes", self.roots_bytes as u64);
        line.number("budget_bytes", self.budget as u64);
        line.number("threads", self.threads as u64);
        line.number("markers", self.markers as u64);
        line.microseconds("stop_us", self.stop_ns);
        line.microseconds("roots_us", self.roots_ns);
        line.microseconds("mark_us", self.mark_ns);
        line.microseconds("sweep_us", self.sweep_ns);
        line.microseconds("pause_us", self.pause_ns);
        line.end()
    }
}

impl Abandoned {
    fn line(&self, pid: u64) -> LogLine {
        let mut line = LogLine::new();
        line.number("pid", pid);
        line.number("abandoned", self.number);
        line.text("reason", self.reason.as_str());
        line.text("cause", self.cause.cause.name());
        if let Some(UnstoppedThread { tid, name, state }) = self.cause.thread {
            line.number("tid", tid as u64);
            let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            line.escaped("thread", &name[..length]);
            line.escaped("state", &[u8::try_from(state).unwrap_or(b'?')]);
        }
        line.number("heap_before_bytes", self.heap_before as u64);
        line.microseconds("waited_us", self.waited_ns);
        line.end()
    }
}

/// A line under construction. The longest one fits (a test builds it).
struct LogLine {
    bytes: [u8; LogLine::CAPACITY],
    length: usize,
}

impl LogLine {
    const CAPACITY: usize = 896;

    fn new() -> LogLine {
        LogLine { bytes: [0; LogLine::CAPACITY], length: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn put(&mut self, text: &[u8]) {
        // One byte is reserved for the end of the line.
        let length = text.len().min(LogLine::CAPACITY - 1 - self.length);
        self.bytes[self.length..self.length + length].copy_from_slice(&text[..length]);
        assert_internal!(length == text.len(), "the longest line of the log fits");
        self.length += length;
    }

    fn key(&mut self, key: &str) {
        if self.length > 0 {
            self.put(b" ");
        }
        self.put(key.as_bytes());
        self.put(b"=");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.put(text.as_bytes());
    }

    fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        self.put(digits(number, &mut [0; 20]).as_bytes());
    }

    fn address(&mut self, key: &str, address: usize) {
        self.key(key);
        self.put(b"0x");
        let digits = (usize::BITS - address.leading_zeros()).div_ceil(4);
        for place in (0..digits).rev() {
            self.put(&[b"0123456789abcdef"[address >> (4 * place) & 15]]);
        }
    }

    /// Microseconds with three places, so that no nanosecond is lost.
    fn microseconds(&mut self, key: &str, ns: u64) {
        self.number(key, ns / 1000);
        let digit = |place: u64| b'0' + (ns / place % 10) as u8;
        self.put(&[b'.', digit(100), digit(10), digit(1)]);
    }

    /// Letters, digits and harmless signs as they are, other bytes as `%` and two hexadecimal digits.
    fn escaped(&mut self, key: &str, bytes: &[u8]) {
        self.key(key);
        for &byte in bytes {
            if byte.is_ascii_alphanumeric() || b"-_.:/+".contains(&byte) {
                self.put(&[byte]);
            } else {
                let digit = |digit: u8| if digit < 10 { b'0' + digit } else { b'A' + digit - 10 };
                self.put(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }

    fn end(mut self) -> LogLine {
        assert_internal!(
            self.length < LogLine::CAPACITY && !self.bytes().contains(&b'\n'),
            "a line of the log is one line"
        );
        self.bytes[self.length] = b'\n';
        self.length += 1;
        self
    }
}

/// A number's decimal digits: core's formatting would bring several KiB of code into every program.
pub(crate) fn digits(mut number: u64, place: &mut [u8; 20]) -> &str {
    let mut first = place.len();
    loop {
        first -= 1;
        place[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    // Digits are ASCII.
    core::str::from_utf8(&place[first..]).unwrap_or("")
}

#[cfg(test)]
mod tests;
