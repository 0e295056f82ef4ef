//! Bounds that the model of the protocol (`testing/ring-model`) sets lower: it tries every order of steps, so the same
//! must happen in fewer of them.

/// Binary logarithm of the words of the smallest block: it holds two groups of any length.
pub const LEAST_BLOCK_LOG2: u32 = 6;
/// How often a producer that finds its ring full polls before it sleeps.
pub const SPINS: u32 = 200;
/// How often a thread that waits for a lock polls before it lets other threads run,
pub const LOCK_SPINS: u32 = 64;
/// and before it sleeps.
pub const LOCK_YIELDS: u32 = 1000;
