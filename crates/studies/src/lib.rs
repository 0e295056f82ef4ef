//! What delayed reclamation and collections do to a program: the studies of Sareen and Blackburn 2022, as computations
//! over observations. Pure: nothing here runs a program or formats a figure.
//!
//! - [`delay`]: time and memory over the size of a quarantine (§7).
//! - [`frequency`]: the mutator's time over the period of collections and of reclamation (§5).
//! - [`proximity`]: a request's time over its distance to the last collection (§6).
//! - [`minheap`]: the smallest heap in which a program completes (§4).

pub mod delay;
pub mod frequency;
pub mod means;
pub mod minheap;
pub mod proximity;
pub mod published;
#[cfg(test)]
mod testing;
