//! The catalog of real programs that heaptoll measures, and the inputs it generates for them.
//!
//! One TOML file describes one program: what it is, its command line, the environment to pin, how its input is
//! generated at three sizes, and the digest of the output that a correct run prints. Nothing in a program is changed
//! or rebuilt for measurement; this crate only turns an entry into a command that can be run.
//!
//! ```no_run
//! use heaptoll_catalog::{Catalog, Places, Size};
//!
//! # fn main() -> Result<(), heaptoll_catalog::CatalogError> {
//! let catalog = Catalog::load("programs".as_ref())?;
//! let places = Places { bin: "target/programs".into(), added: "/opt/added".into(), inputs_cache: "/tmp/inputs".into() };
//! let prepared = catalog.find("gawk")?.prepare(Size::Quick, &places)?;
//! println!("{}", prepared.command.join(" "));
//! # Ok(())
//! # }
//! ```

mod cache;
mod catalog;
mod check;
mod entry;
mod error;
mod file_digest;
mod generate;
mod installed_version;
mod nearest;
mod placeholder;
mod program;
mod scratch_word;
mod set;
mod size;
mod stdin;
mod varying;
mod verified;

pub use catalog::Catalog;
pub use entry::Stat;
pub use error::CatalogError;
pub use file_digest::FileDigest;
pub use generate::Generator;
pub use nearest::{did_you_mean, nearest};
pub use program::{Places, Prepared, PreparedServe, Program};
pub use scratch_word::fill_scratch;
pub use set::Set;
pub use size::Size;
pub use varying::Varying;
