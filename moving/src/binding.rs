//! What MMTk requires of a virtual machine: objects, roots, stopping the world, and when to collect.

mod collection;
mod mutators;
mod objects;
mod roots;
mod trigger;

pub use mutators::{MUTATOR, name as mutator_name};
pub use objects::copied;
