//! Plays the adversary (`programs/robson`) against memory managers and sets what it reached beside what is proved.
//!
//! The adversary is a C program of its own, so that it plays against whatever is preloaded, closed managers too.

pub mod bounds;
pub mod game;
pub mod table;

pub use game::{Game, GameError, Outcome, STRATEGIES};
