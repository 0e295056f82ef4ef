//! What one run showed: its objects in the order of their allocation.

use thiserror::Error;

/// An object, from its allocation to the next `realloc` of it. Points are numbers of allocations made before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Requested bytes.
    pub size: u64,
    /// Index into [`Recording::sites`].
    pub site: u32,
    /// Of a `realloc`: the size of the block that it ended, bytes, which need not be an object.
    pub resized: Option<u64>,
    /// How many allocations had been made at its last touch, its own included.
    pub last_use: u64,
    /// How many had been made when the program freed it; `None`: it never did.
    pub freed: Option<u64>,
    /// How many when it could not be reached any more, its last use at the earliest; `None`: it could to the end, or that
    /// was not recorded.
    pub unreachable: Option<u64>,
}

/// Where an allocation is called from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Site {
    /// Path of the object file; empty for code of none.
    pub object: String,
    /// Address in the object file of the last byte of the call.
    pub address: u64,
}

/// A run, from the beginning of `main` on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// Objects by allocation index.
    pub objects: Vec<Object>,
    /// Call sites.
    pub sites: Vec<Site>,
}

/// Why a run cannot be an oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unusable {
    /// The order in which threads allocate is the scheduler's.
    #[error(
        "the program starts a thread: the order of allocations then changes from run to run and cannot identify \
         objects; use a variant with one thread"
    )]
    Threads,
    /// More than the file has numbers for.
    #[error("the program allocates more than 2^31 objects; give it less to do")]
    Objects,
    /// More than the file has numbers for.
    #[error("the program allocates from more than 2^22 places, or an object of 2^40 bytes or more")]
    TooLarge,
    /// Nothing to follow.
    #[error("the program allocates nothing by malloc")]
    Nothing,
}
