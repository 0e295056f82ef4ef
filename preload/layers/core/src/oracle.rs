//! The parts of the oracle layer, without the names that it exports.
//!
//! The layer frees each object of an unmodified program at a point that was recorded before, in place of the program's
//! own free (Hertz and Berger, "Quantifying the Performance of Garbage Collection vs. Explicit Memory Management", 2005,
//! did so in a simulator). [`sequence`] compares each allocation with the recorded one, [`schedule`] frees objects at their
//! last use, [`pending`] some time after the program's free, and [`pages`] proves that nothing is touched after it was
//! freed. All are of one thread: a program with more is refused.

pub mod difference;
pub mod pages;
pub mod pending;
pub mod reader;
pub mod schedule;
pub mod sequence;
pub mod settings;
pub mod sites;
