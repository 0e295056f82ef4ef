//! The protocol of the recording rings under loom: every order of steps, and every value that a load may return, in
//! which producers and the tool can use one file.
//!
//! The sources are those of `shm/alloc-ring`, of both sides. Four modules are replaced: [`atomic`] by atomics that loom
//! schedules, `sys` by a system in which no time passes, `bounds` by lower bounds, and the tool's `proc` by threads that
//! the model ends. [`mutant`] changes single steps of the sources, to show that the model finds errors.
#![allow(dead_code, unused_imports, reason = "the model uses a part of the sources")]

pub mod atomic;
mod bounds;
pub mod mutant;
pub mod program;
pub mod recording;
pub mod scenarios;
mod sys;
mod world;

#[path = "../../../shm/alloc-ring/src/address_space.rs"]
mod address_space;
#[path = "../../../shm/alloc-ring/src/attach.rs"]
mod attach;
#[path = "../../../shm/alloc-ring/src/attachment.rs"]
mod attachment;
#[path = "../../../shm/alloc-ring/src/emit.rs"]
mod emit;
#[path = "../../../shm/alloc-ring/src/execs.rs"]
mod execs;
#[path = "../../../shm/alloc-ring/src/flags.rs"]
mod flags;
#[path = "../../../shm/alloc-ring/src/layout.rs"]
mod layout;
#[path = "../../../shm/alloc-ring/src/lock.rs"]
mod lock;
#[path = "../../../shm/alloc-ring/src/memory.rs"]
mod memory;
#[path = "../../../shm/alloc-ring/src/pointers.rs"]
mod pointers;
#[path = "../../../shm/alloc-ring/src/producer.rs"]
mod producer;
#[path = "../../../shm/alloc-ring/src/rings.rs"]
mod rings;
#[path = "../../../shm/alloc-ring/src/state.rs"]
mod state;
#[path = "../../../shm/alloc-ring/src/thread_word.rs"]
mod thread_word;
#[path = "../../../shm/alloc-ring/src/wait.rs"]
mod wait;
#[path = "../../../shm/alloc-ring/src/word.rs"]
mod word;

mod tool {
    #[path = "../../../../shm/alloc-ring/src/tool/arrival.rs"]
    mod arrival;
    #[path = "../../../../shm/alloc-ring/src/tool/counter.rs"]
    mod counter;
    #[path = "../../../../shm/alloc-ring/src/tool/decode.rs"]
    mod decode;
    #[path = "../../../../shm/alloc-ring/src/tool/drained.rs"]
    mod drained;
    #[path = "../../../../shm/alloc-ring/src/tool/error.rs"]
    mod error;
    #[path = "../../../../shm/alloc-ring/src/tool/event.rs"]
    mod event;
    #[path = "../../../../shm/alloc-ring/src/tool/execs.rs"]
    mod execs;
    #[path = "../../../../shm/alloc-ring/src/tool/folder.rs"]
    mod folder;
    #[path = "../../../../shm/alloc-ring/src/tool/head.rs"]
    mod head;
    #[path = "../../../../shm/alloc-ring/src/tool/map.rs"]
    pub(crate) mod map;
    #[path = "../../../../shm/alloc-ring/src/tool/merge.rs"]
    mod merge;
    mod proc;
    #[path = "../../../../shm/alloc-ring/src/tool/shared.rs"]
    mod shared;
    // rustfmt searches its unit tests in another folder.
    #[rustfmt::skip]
    #[path = "../../../../shm/alloc-ring/src/tool/tap.rs"]
    mod tap;
    #[path = "../../../../shm/alloc-ring/src/tool/usable.rs"]
    mod usable;

    pub use arrival::Arrival;
    pub use drained::Drained;
    pub use event::{RingEvent, Sink};
    pub use shared::Shared;
    pub use tap::Tap;
}

pub use thread_word::ThreadWord;
pub use tool::{Arrival, Drained, RingEvent, Shared, Sink, Tap};
