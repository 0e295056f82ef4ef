//! Numbers of objects: what the map of granules leads to, and what the objects are kept by.

/// Number of an object, valid until it is removed.
pub type Index = u32;

/// No object.
pub(super) const NONE: Index = 0;
