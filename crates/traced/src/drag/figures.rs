//! The figures, as in the JSON.

use heaptoll_callsites::Sum;
use heaptoll_drag::space::Space;
use heaptoll_drag::{Clock, Figures as ImageFigures};
use heaptoll_profiles::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rows;

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactDragFigures {
    /// Whether all runs were made.
    pub complete: bool,
    /// Whether randomness was pinned.
    pub pinned: bool,
    /// The clock that sorts sites, and that of tables and charts.
    pub clock: Clock,
    /// One each, in the requested order.
    pub programs: Vec<Program>,
}

/// One program.
pub type Program = rows::Program<Row>;

/// One program under one manager.
pub type Row = rows::Row<ImageFigures, ImageTotals, Stacks>;

/// What the page alone shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stacks {
    /// The objects of that image by call stack, where call sites were recorded.
    #[serde(skip)]
    pub stacks: Option<Profile>,
}

/// Process images together. Each has a clock of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageTotals {
    /// How many.
    pub images: usize,
    /// Their objects.
    pub all: Sum,
    /// Bytes x instructions, by phase.
    pub space_instructions: Space,
    /// Bytes x bytes allocated, by phase.
    pub space_bytes: Space,
}

impl ImageTotals {
    /// Adds an image.
    pub fn add(&mut self, figures: &ImageFigures) {
        self.images += 1;
        self.all = self.all.plus(figures.all.all);
        self.space_instructions = self.space_instructions.plus(&figures.all.space_instructions);
        self.space_bytes = self.space_bytes.plus(&figures.all.space_bytes);
    }

    /// Their space on a clock.
    pub fn space(&self, clock: Clock) -> &Space {
        match clock {
            Clock::Instructions => &self.space_instructions,
            Clock::Bytes => &self.space_bytes,
        }
    }
}
