//! When objects are touched, freed and reclaimed, from what the tracer tells.
//!
//! [`Drag`] hears one process image and gives [`Figures`]: the space-time that objects spend in lag, use, drag and void
//! (Röjemo & Runciman, *Lag, Drag, Void and Use*, 1996), by size and call site and over time. It computes; words and
//! tables are made by the caller. [`objects::Objects`] finds the object that an address lies in.

pub mod drag;
pub mod figures;
pub mod group;
pub mod life;
pub mod objects;
pub mod pointers;
pub mod sites;
pub mod space;
pub mod stamp;
pub mod timeline;

pub use drag::{About, Drag};
pub use figures::{Asked, Figures};
pub use stamp::Clock;
