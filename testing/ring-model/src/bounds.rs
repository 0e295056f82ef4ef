//! Lower bounds than those of the recording, in place of `shm/alloc-ring/src/bounds.rs`: the same happens in fewer
//! steps.

/// A block holds one group of any length.
pub const LEAST_BLOCK_LOG2: u32 = 3;
/// A producer that finds its ring full polls once more.
pub const SPINS: u32 = 1;
/// A thread that waits for a lock polls, since no unlock wakes it.
pub const LOCK_SPINS: u32 = 1;
/// See [`LOCK_SPINS`].
pub const LOCK_YIELDS: u32 = 1000;
