//! The atomics of memory that threads or processes share. They are the language's own; the model of the protocol
//! (`testing/ring-model`) compiles the sources of both sides with atomics that show every permitted order.

pub use core::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, compiler_fence,
};
