//! Words of a block that its manager reads: a [`header`] in front of it, or boundary [`tags`] at both ends, for managers
//! that coalesce free neighbours.

pub mod header;
pub mod tags;
