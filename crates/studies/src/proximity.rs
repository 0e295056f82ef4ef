//! A request's time over its distance to the last collection (Sareen and Blackburn 2022, §6).
//!
//! [`distances`] relates each request of a run to the collections of that run and leaves out those that a collection
//! interrupted; [`group`] sorts what is left by distance and averages it in groups; [`normalise`] sets the groups of
//! all scales (10, 100, 1000 collections a run) against the fastest of them; [`series`] and [`portions`] compare what
//! comes soon after a collection with what comes in the middle, paired within runs.

mod distance;
mod groups;
mod portions;

pub use distance::{Distances, Sample, Span, distances};
pub use groups::{Group, Grouped, Shape, group, normalise};
pub use portions::{PORTIONS, Portion, Ratio, Series, portions, series};
