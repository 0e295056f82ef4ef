//! The crate schemars, or nothing: the types that commands write as JSON derive `JsonSchema`, and only tests and `make
//! reference` read the schemas. Without the feature `schemas` the derive makes nothing. Dependents name this crate
//! `schemars`, so that the code that the real derive makes finds its paths.

#[cfg(feature = "schemas")]
pub use schemars::*;

#[cfg(not(feature = "schemas"))]
pub use heaptoll_schemas_none::JsonSchema;
