//! How much memory the reader of a trace may take. A few kilobytes of zstd can hold a hundred million objects that are
//! never freed, and whoever sums up a trace keeps some bytes of each live object: without a limit a file from somebody
//! else could fill a machine.

/// Bytes that a reader may take for objects when nothing else is asked for: 1 GiB.
pub const MEMORY_LIMIT: u64 = 1 << 30;
/// Bytes that the reader itself keeps of an object whose slot it had to number anew.
const RENAMED: u64 = 24;

/// A limit, and what counts against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that may be taken.
    pub limit_bytes: u64,
    /// Bytes that the user of a reader keeps of each object that lives at once with others.
    pub each_object_bytes: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { limit_bytes: MEMORY_LIMIT, each_object_bytes: 0 }
    }
}

impl Memory {
    /// Bytes for so many slots, of which so many were numbered anew.
    pub(crate) fn needs_bytes(&self, slots: u32, renamed: usize) -> u64 {
        let objects = u64::from(slots).saturating_mul(self.each_object_bytes);
        objects.saturating_add(u64::from(slots) / 8).saturating_add((renamed as u64).saturating_mul(RENAMED))
    }

    /// Whether that is within the limit.
    #[inline]
    pub(crate) fn allows(&self, slots: u32, renamed: usize) -> bool {
        self.needs_bytes(slots, renamed) <= self.limit_bytes
    }
}
