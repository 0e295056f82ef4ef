//! Programs and managers of others: fetched, checked, built and proved here. What a user adds is never shipped.
//!
//! Those in Java are jars of Maven Central and a driver of ours ([`JarRecipe`]), or suites that the user has as a jar
//! ([`GivenJar`]); what follows is of those in C.
//!
//! The programs that Zorn (1992) and Detlefs, Dosser and Zorn (1994) measured survive in a public repository, under
//! licences that forbid one thing or another to those who pass them on. So heaptoll has a *recipe* of them only: the
//! digest of each file, the few changes that 64 bits need, the flags of each form, and how many objects each form
//! allocates with one input. Counts prove more than outputs do: a function that is not declared can leave the output as
//! it is and the allocations not.
//!
//! Managers are added in the same way ([`ManagerRequest`]), by the builder of the peers that heaptoll ships.

mod add_managers;
mod build;
mod change;
mod counted_run;
mod error;
mod fetch;
mod given_jar;
mod install;
mod jars;
mod proof;
mod recipe;
pub mod spec;

pub use add_managers::{ManagerRequest, add_managers};
pub use counted_run::Counts;
pub use error::{OriginalsError, Refusal};
pub use given_jar::{GivenJar, GivenJarError};
pub use install::{Added, AddedForm, Request, add};
pub use jars::{JarError, JarRecipe};
pub use recipe::Recipe;
