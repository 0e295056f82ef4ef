//! What a trace with pointers shows: edges, root points, what is reachable at each, and how far the bounds of each
//! object's death are apart.
//!
//! One pass. At each root point everything that can be reached from its roots is marked. An object that is not reached
//! and that the program touches later was held by a *hidden pointer*: one that is stored in parts, computed, encoded, or
//! outside of what is scanned.

mod figures;
mod heap;
pub mod lost;
pub mod objects;
mod requests;
mod sites;

pub use figures::{DeathBounds, GraphFigures, HiddenPointers, RootCounts, RootPoint};
pub use heap::{EACH_OBJECT, GraphHeap};
pub use sites::GraphSite;
