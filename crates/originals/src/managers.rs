//! Managers of others: fetched or found, checked, built and proved here.
//!
//! A recipe names how their authors build them, and C of ours for functions that they lack. What a user adds comes from
//! repositories, at a commit and with the digest of each file, and is never shipped. The peers, which are, come from
//! crates of the Rust registry, or are Debian's.

mod add;
mod builder;
mod description;
mod object;
mod recipe;
mod sources;
mod table;

pub use add::{ManagerRequest, add_managers};
pub use builder::{AddedManager, Builder, Proof};
pub use description::installed;
pub use recipe::{ManagerRecipe, Object};
pub use sources::Sources;
