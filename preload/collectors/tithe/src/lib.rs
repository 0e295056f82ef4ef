//! Tithe: malloc and a conservative collector on one heap.
//!
//! A block is kept as long as a word in a register, on a stack, in static data, in another block or anywhere else in
//! writable memory equals an address in it. free reclaims a block at once, except in mode `collect`, where it does
//! nothing (Zorn 1992, §2.2: "calls to free are ignored").
//!
//! From the bottom up: [`class`] defines the size classes, [`reservation`] the addresses of the heap and its tables;
//! [`runs`] manages the free units, [`spans`] the free blocks of a span class, [`cache`] and [`bump`] those of a thread. [`heap`]
//! joins these; the modules in its folder move blocks. [`collector`] is the state between collections, [`mark`] finds
//! what is reachable, [`stopped`] stops the world, [`collection`] joins these phase by phase, [`policy`] and [`budget`]
//! decide when. [`process`] implements malloc with all of it. `testing/lint/order.toml` has the whole order, and a test holds
//! every use and call against it.
#![no_std]

mod abandoned;
mod added;
mod age;
mod ages;
pub mod api;
mod block_test;
mod bound;
mod budget;
mod bump;
mod cache;
mod caches;
mod census;
pub mod class;
mod collection;
mod collector;
mod fork;
mod freed;
mod generations;
mod guard_settings;
mod heap;
mod increments;
mod log;
mod mark;
mod markers;
mod misuse;
mod mode;
mod policy;
pub mod process;
mod progress;
mod readable;
mod remembered;
mod reservation;
mod resident;
mod rule;
mod runs;
mod settings;
mod signal;
mod span;
mod spans;
mod stopped;
mod thread_cache;
mod unfreed;
pub mod why;

pub use heap::Heap;
pub use process::Process;
