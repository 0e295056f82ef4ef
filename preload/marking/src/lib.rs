//! What all markers share, whatever heap they mark: the stack of blocks to be scanned, the pool from which markers that
//! have nothing left take what others have too much of, and the threads that help the one that collects.
//!
//! Tithe marks its own heap with it, and the sweep layer the blocks of any malloc.
#![no_std]

mod marker;
mod pool;
mod stack;
mod sync;
mod workers;

pub use marker::{Heap, Marker, WORDS, prefetch};
pub use pool::Pool;
pub use stack::{Grey, KEPT, MarkStack};
pub use workers::{MARKERS_MAX, MarkOutcome, THRESHOLD, Work, Workers, cores, help};
