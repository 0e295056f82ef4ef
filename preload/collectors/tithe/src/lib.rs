//! Tithe: malloc and a conservative collector on one heap.
//!
//! A block stays as long as a word in a register, on a stack, in static data, in another block or anywhere else in
//! writable memory looks like an address in it. free takes a block back at once, except in mode `collect`, where it
//! does nothing (Zorn 1992, §2.2: "calls to free are ignored").
//!
//! From below: [`class`] says which sizes there are, [`reservation`] where the heap and its tables lie, [`runs`] which units
//! are free, [`spans`] which blocks of a class are, [`cache`] what a thread keeps of them. [`heap`] joins these.
//! [`mark`] finds what is reachable, [`collection`] stops the world for it, [`policy`] says when. [`process`] makes
//! all of it a malloc.
#![no_std]

mod added;
pub mod api;
mod cache;
mod caches;
mod census;
pub mod class;
mod collection;
mod fork;
mod heap;
mod log;
mod mark;
mod markers;
mod misuse;
mod policy;
pub mod process;
mod reservation;
mod runs;
mod settings;
mod signal_mask;
mod span;
mod spans;
pub mod why;

pub use heap::Heap;
pub use process::Process;
