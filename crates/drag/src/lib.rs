//! When objects are touched, freed and reclaimed, from the tracer's records.
//!
//! [`Drag`] decodes one process image and returns [`Figures`]: the space-time that objects spend in lag, use, drag and
//! void (Röjemo & Runciman, *Lag, Drag, Void and Use*, 1996), by size and call site and over time. It computes; the
//! caller makes text and tables. [`objects::Objects`] finds the object that contains an address.

pub mod drag;
pub mod figures;
pub mod group;
pub mod lifetime;
pub mod objects;
pub mod pointers;
pub mod sites;
pub mod space;
mod stacks;
pub mod stamp;
pub mod timeline;

pub use drag::{Drag, ManagerInfo};
pub use figures::{FigureOptions, Figures};
pub use stamp::Clock;
