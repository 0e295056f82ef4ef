//! Managers of others: found or fetched, checked, built and proved here.
//!
//! A recipe names how their authors build them, and C of ours for functions that they lack. The peers, which are shipped,
//! come from crates of the Rust registry, or are Debian's. The laboratory adds others from repositories for one user.

mod builder;
pub mod compiler;
mod description;
pub mod manifest;
mod object;
pub mod path;
pub mod process;
mod recipe;
mod refusal;
mod sources;
mod table;

pub use builder::{AddedManager, Builder, Proof};
pub use description::installed;
pub use recipe::{ManagerRecipe, Object};
pub use refusal::{RecipeError, Refusal};
pub use sources::{Sources, labelled};
pub use table::Repository;
