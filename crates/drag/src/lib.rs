//! When objects are touched, freed and reclaimed.

pub mod objects;
pub mod space;
pub mod stamp;
pub mod timeline;
