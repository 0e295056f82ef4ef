//! What marks an artifact's description.

/// Marks our files.
pub const FORMAT: &str = "heaptoll-artifact";
/// Version of the format.
pub const VERSION: u64 = 1;
