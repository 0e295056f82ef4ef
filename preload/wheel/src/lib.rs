//! Baker's treadmill as a structure ("The Treadmill: Real-Time Garbage Collection Without Motion Sickness", 1992): cells
//! of size classes in circles of four segments. Two collectors are made of it, one for replays of traces with pointers,
//! which marks in increments (`moving/replay/src/collectors`), and one for unmodified programs (`preload/historic/src/treadmill`).
#![no_std]

pub mod class;
mod links;
mod wheel;

pub use links::{Links, REACH_BYTES};
pub use wheel::{SEGMENTS, SENTINEL_BYTES, Segment, Wheel};
