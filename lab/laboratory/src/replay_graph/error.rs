//! Why a trace with pointers cannot be replayed as requested.

use thiserror::Error;

/// A request that cannot be carried out.
#[derive(Debug, Error)]
pub enum GraphReplayError {
    /// A manager of programs, with a trace with pointers.
    #[error(
        "-m {word}: a trace with pointers is replayed under collectors of MMTk: {known}. An allocator moves \
         nothing and needs no pointers: replay a trace of `heaptoll record` with `heaptoll trace replay`"
    )]
    NoPlan {
        /// What was given.
        word: String,
        /// The plans.
        known: String,
    },
    /// None of this name.
    #[error("-m {word}: there is no such collector{suggestion}; plans are {known}")]
    UnknownPlan {
        /// What was given.
        word: String,
        /// The nearest name, as the sentence goes on with it, or nothing.
        suggestion: String,
        /// The plans.
        known: String,
    },
    /// The trace could not be made ready.
    #[error("{trace} cannot be made ready for replays: {why}")]
    NotReady {
        /// The trace.
        trace: String,
        /// Why.
        why: String,
    },
    /// Misses of a trace without loads and stores.
    #[error(
        "{trace} has no loads and stores, so caches cannot be simulated: record it with `heaptoll record \
         --graph --references`"
    )]
    NoAccesses {
        /// The trace.
        trace: String,
    },
    /// What replays read does not fit into memory.
    #[error(
        "{trace} needs {needs} of memory for a replay, but this machine has {available} free: record a \
         shorter run, or without --references"
    )]
    TooLong {
        /// The trace.
        trace: String,
        /// What it takes.
        needs: String,
        /// What is free.
        available: String,
    },
    /// A heap that the machine has no memory for.
    #[error(
        "a heap of {heap} is more than the {available} that this machine has free: give a smaller one with --heap"
    )]
    TooLarge {
        /// The heap.
        heap: String,
        /// What is free.
        available: String,
    },
}
