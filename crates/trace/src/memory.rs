//! Limits the memory that the reader of a trace may take. A few kilobytes of zstd can hold a hundred million objects
//! that are never freed, and every summary of a trace keeps some bytes of each live object: without a limit a file from
//! an untrusted source could fill the memory of the machine.

/// Bytes that a reader may take for objects unless set otherwise: 1 GiB.
pub const MEMORY_LIMIT: u64 = 1 << 30;

/// A limit, and what counts against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that may be taken.
    pub limit_bytes: u64,
    /// Bytes that the user of a reader keeps of each object that is live at the same time as others.
    pub each_object_bytes: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { limit_bytes: MEMORY_LIMIT, each_object_bytes: 0 }
    }
}
