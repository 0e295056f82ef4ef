//! Managers of others that a user adds: fetched, checked, built and proved here, and never shipped.
//!
//! What is in no registry of crates has no place among the peers. A recipe names repositories and commits, the digest of
//! each file, how their authors build it, and C of ours for functions that it lacks.

mod add;
mod build;
mod description;
mod recipe;

pub use add::{AddedManager, ManagerRequest, add_managers};
pub use recipe::ManagerRecipe;
