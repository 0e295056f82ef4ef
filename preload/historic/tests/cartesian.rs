//! The tests of `cartesian`.

mod tree;
mod trial;
mod worst;
