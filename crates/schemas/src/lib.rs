//! The crate schemars, or nothing: the types that commands write as JSON derive `JsonSchema`, and only tests and `make
//! reference` read the schemas. Without the feature `schemas` the derive makes nothing. Dependents name this crate
//! `schemars`, so that the code that the real derive makes finds its paths.

#[cfg(feature = "schemas")]
pub use schemars::*;

#[cfg(not(feature = "schemas"))]
pub use heaptoll_schemas_none::JsonSchema;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What heaptoll writes as JSON under a name and version, and reads again.
pub trait Labelled: Serialize + DeserializeOwned {
    /// Both: `heaptoll-stat/1`.
    const SCHEMA: &'static str;
}

/// Labels a type.
#[macro_export]
macro_rules! labelled {
    ($type:ty, $schema:expr) => {
        impl $crate::Labelled for $type {
            const SCHEMA: &'static str = $schema;
        }
    };
}
