//! The figures, as in the JSON.

use heaptoll_callsites::Sum;
use heaptoll_drag::space::Space;
use heaptoll_drag::{Clock, Figures as ImageFigures};
use heaptoll_profiles::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_runs::traced::ImageSummary;

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactDragFigures {
    /// Whether all runs were made.
    pub complete: bool,
    /// Whether randomness was pinned.
    pub pinned: bool,
    /// The clock by which sites are sorted, and that of tables and charts.
    pub clock: Clock,
    /// One each, in the requested order.
    pub programs: Vec<Program>,
}

/// One program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name.
    pub program: String,
    /// Its command.
    pub command: Vec<String>,
    /// The manager that came first.
    pub baseline: String,
    /// One a manager, the baseline first.
    pub managers: Vec<Row>,
}

/// One program under one manager.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The manager as it was requested.
    pub manager: String,
    /// Its version; empty when unknown.
    pub version: String,
    /// Why there are no figures, or not all.
    pub problem: Option<String>,
    /// The process image the figures are of: that with the most instructions.
    pub image: Option<ImageSummary>,
    /// Its figures.
    pub figures: Option<ImageFigures>,
    /// All process images together, where there were several.
    pub all_images: Option<ImageTotals>,
    /// The objects of that image by call stack, where call sites were recorded; for the page.
    #[serde(skip)]
    pub stacks: Option<Profile>,
    /// Warnings of the tracer and the preflight about this run.
    pub warnings: Vec<String>,
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
