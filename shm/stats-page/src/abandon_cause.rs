//! Why a collection was abandoned: the heap grows instead.

/// A cause; the member `abandon_causes` of a slot has its bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbandonCause {
    /// A thread did not stop in time.
    Thread,
    /// The system gave no memory for the collector's own tables.
    Memory,
    /// The process was made without the C library's `fork`: it may share its parent's memory, and the handlers of fork
    /// have not run.
    Process,
    /// The threads could not be listed.
    Threads,
    /// The mappings or their pages could not be read.
    Roots,
    /// No file descriptor was free to read `/proc/self` with.
    Descriptors,
    /// The handler that stops threads could not be installed.
    Signal,
    /// The signal that stops threads could not be queued.
    Queue,
    /// A thread did not leave the manager in time.
    Inside,
}

impl AbandonCause {
    /// All, with the names that logs have, and what reports have.
    const NAMES: [(AbandonCause, &str, &str); 9] = [
        (AbandonCause::Thread, "thread", "a thread did not stop in time"),
        (AbandonCause::Memory, "memory", "the system gave no memory for them"),
        (
            AbandonCause::Process,
            "process",
            "a process was made by vfork, clone or _Fork, which call no handlers of fork",
        ),
        (AbandonCause::Threads, "threads", "/proc/self/task was not readable"),
        (AbandonCause::Roots, "roots", "/proc/self/maps was not readable"),
        (AbandonCause::Descriptors, "descriptors", "no file descriptor was free to read /proc/self with"),
        (AbandonCause::Signal, "signal", "no signal could be had to stop threads with"),
        (AbandonCause::Queue, "queue", "no more signals could be queued (RLIMIT_SIGPENDING)"),
        (AbandonCause::Inside, "inside", "a thread did not leave the manager in time"),
    ];

    pub const fn bit(self) -> u64 {
        1 << self as u32
    }

    /// Those of a slot, which any process may have written: unknown bits are dropped.
    pub fn of_bits(bits: u64) -> impl Iterator<Item = AbandonCause> {
        AbandonCause::NAMES.into_iter().map(|(cause, ..)| cause).filter(move |cause| bits & cause.bit() != 0)
    }

    /// The name that logs have.
    pub const fn name(self) -> &'static str {
        AbandonCause::NAMES[self as usize].1
    }

    /// What reports have.
    pub const fn text(self) -> &'static str {
        AbandonCause::NAMES[self as usize].2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_bit_and_its_own_row_of_names() {
        for (number, (cause, name, text)) in AbandonCause::NAMES.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
            assert_eq!((cause.name(), cause.text()), (name, text));
            assert!(AbandonCause::of_bits(cause.bit()).eq([cause]));
        }
        assert_eq!(AbandonCause::of_bits(u64::MAX).count(), 9);
    }
}
