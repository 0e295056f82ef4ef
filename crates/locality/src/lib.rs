//! (being written)

pub mod hierarchy;
pub mod machine;
pub mod over_time;
pub mod placement;
