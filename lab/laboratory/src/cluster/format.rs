//! What marks a plan, and the version of its format.

/// What marks a plan.
pub const FORMAT: &str = "heaptoll-plan";
/// Version of the format.
pub const VERSION: u64 = 1;
