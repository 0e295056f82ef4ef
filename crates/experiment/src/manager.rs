//! Managers by name: glibc, those built here or added by the user, Debian's stand-ins, and any shared object by path.

mod built;
mod debian;
mod definition;
mod error;
mod find;
mod known;
mod order;
mod selection;
mod settings;
mod stacked;
#[cfg(test)]
mod tests;

pub use definition::{
    Group, Manager, ManagerSource, collects, filled, glibc, ignores_frees, in_folder, uses_folder,
};
pub use error::ManagerError;
pub use find::{find, stand_in, version_for};
pub use known::{installed, known, known_with_java};
pub use selection::{choose, choose_with_baseline, default_set, everything, is_group, names_of};
