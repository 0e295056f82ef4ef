//! What memory management costs a program at least.

use heaptoll_experiment::comparison::ProgramBounds;

use super::super::palette::Palette;
use super::super::views::{Chip, Ratio};
use crate::bounds::{self, Bound, StackBounds};

/// One stack's lower bound of overhead.
pub struct BoundLine {
    /// Stack.
    pub chip: Chip,
    /// In time.
    pub wall: Ratio,
    /// In CPU.
    pub cpu: Ratio,
    /// What was taken out of its cost.
    pub taken: String,
}

/// A line a stack.
pub fn bound_lines(found: &ProgramBounds, palette: &Palette) -> Vec<BoundLine> {
    let ratio = |bound: &Bound| match bound {
        // These baselines were not chosen: no side of 1 is the better one.
        Bound::Of(interval) => Ratio { class: "same", ..Ratio::of(Some(interval), "") },
        Bound::Words(words) => Ratio::of(None, words),
    };
    let line = |line: &StackBounds| BoundLine {
        chip: Chip::of(line.stack, palette),
        wall: ratio(&line.wall),
        cpu: ratio(&line.cpu),
        taken: line.taken.clone(),
    };
    bounds::lines(found).iter().map(line).collect()
}
