//! All simulators over one stream of references, in one pass.

pub mod profile;
pub mod settings;
pub mod split;

pub use profile::{Partial, Profile};
pub use settings::{BadSettings, Sampling, Settings};
pub use split::{Maker, Split};
