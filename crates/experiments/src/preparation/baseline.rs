//! The manager that ratios are taken to when none is named.

/// Its name.
pub const DEFAULT: &str = "glibc";
