//! What those who mark share, whatever heap they mark: the stack of blocks to be read, the pool from which markers
//! that have nothing left take what others have too much of, and the threads that help the one that collects.
//!
//! Tithe marks its own heap with it, and the sweep layer the blocks of any malloc.
#![no_std]

mod crew;
mod marker;
mod pool;
mod stack;
mod sync;

pub use crew::{Crew, MARKERS_MAX, Share, THRESHOLD, Work, help};
pub use marker::{Heap, Marker, WORDS, fetch};
pub use pool::Pool;
pub use stack::{Grey, KEPT, MarkStack};
pub use sync::call;
