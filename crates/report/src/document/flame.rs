//! Call stacks with values, to be drawn as a flame graph.

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
}
