//! Plays the adversary (`programs/robson`) against memory managers and compares the result with proved bounds.
//!
//! The adversary is a C program of its own, so that it plays against any preloaded manager, closed ones too.

pub mod bounds;
pub mod game;
pub mod table;

pub use game::{Game, GameError, Outcome, STRATEGIES};
