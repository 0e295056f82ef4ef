//! The parts of the quarantine layer, without the names that it exports.
//!
//! The delay is that of Sareen and Blackburn, "Better Understanding the Costs and Benefits of Automatic Memory
//! Management" (2022), §7.1: each thread keeps the blocks that it frees in a buffer of its own, and when the volume of
//! all of them passes a bound, each thread frees all of its own. [`volume`] is the volume, [`thread`] a thread with its
//! buffer, [`delay`] the way of a block through both; [`checked`] finds what was written to meanwhile.

pub mod checked;
pub mod delay;
pub mod fill;
pub mod settings;
pub mod thread;
pub mod volume;
