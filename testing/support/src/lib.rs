//! What tests of several packages share.

pub mod damage;
pub mod staged;
