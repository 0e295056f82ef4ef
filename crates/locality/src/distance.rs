//! Exact LRU stack distances in one pass.

pub mod curve;
pub mod histogram;
