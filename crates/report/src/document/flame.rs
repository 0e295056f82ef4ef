//! Call stacks with values, to be drawn as a flame graph; or those of two recordings, to be drawn as one of their
//! differences.

use heaptoll_profiles::{Measure, Profile};

/// A flame graph: frames by caller, as wide as their values.
#[derive(Debug, Clone, PartialEq)]
pub struct Flame {
    /// What it shows.
    pub title: String,
    /// What its values are, in a sentence or two; how to read the picture is on the page anyway.
    pub caption: String,
    /// The stacks. Measures that do not add up over stacks are left out.
    pub profile: Profile,
    /// The measure that is shown first; the first of the profile where it does not have it.
    pub first: Measure,
    /// What the stacks are compared with; none for a graph of one profile.
    pub base: Option<Box<FlameBase>>,
}

/// What the stacks of a flame graph are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct FlameBase {
    /// The stacks from which changes are counted; with the same measures in the same order. Frames of the same function
    /// and object are the same.
    pub profile: Profile,
    /// What the page calls these, and what it calls the flame's own: `before`, `after`.
    pub names: [String; 2],
}
