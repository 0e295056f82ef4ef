//! Plays the adversary (`programs/robson`) against memory managers and compares the result with proved bounds.
//!
//! The adversary is a C program of its own, so that it plays against any preloaded manager, closed ones too.

pub mod bounds;
mod command;
pub mod game;
mod table;

pub use command::{Options, run};
pub use game::{Game, GameError, Outcome, STRATEGIES};
