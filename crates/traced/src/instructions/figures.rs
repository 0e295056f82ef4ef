//! The figures, as in the JSON.

use std::collections::BTreeMap;

use heaptoll_instruction_counts::{Amounts, Figures as ImageFigures, Tables};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rows;

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactInstructionsFigures {
    /// Whether all runs were made.
    pub complete: bool,
    /// Whether randomness was pinned.
    pub pinned: bool,
    /// Requested runs of each program under each manager.
    pub repeat: u32,
    /// One each, in the requested order.
    pub programs: Vec<Program>,
}

/// One program.
pub type Program = rows::Program<Row>;

/// One program under one manager.
pub type Row = rows::Row<ImageFigures, ImageTotals, Runs>;

/// What its runs agree in, and the functions that they executed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Runs made of this cell.
    pub runs: u32,
    /// Whether all runs agreed in every figure; `null` for a single run.
    pub agree: Option<bool>,
    /// By how much they did not.
    pub differ_by: Option<Disagreement>,
    /// The object file that each routine was found in.
    pub routine_objects: BTreeMap<String, String>,
    /// Instructions of each function of all process images, most first; those with a hundred thousandth of all or less
    /// are one in each object. Empty in files of before.
    #[serde(default)]
    pub functions: Vec<FunctionFigures>,
}

/// What a function executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FunctionFigures {
    /// The process image: its executable without the folder.
    pub image: String,
    /// Path of the executable or library that has it; empty for code made at run time.
    pub object: String,
    /// Its symbol, mangled; empty for code without one.
    pub symbol: String,
    /// Instructions that it executed itself.
    pub instructions: u64,
    /// Instructions that the libraries of C and C++ executed for it; they are in `instructions` of functions of these.
    pub library_instructions: u64,
}

/// Largest differences between runs, instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disagreement {
    /// Of application instructions.
    #[serde(rename = "application_instructions")]
    pub application: u64,
    /// Of allocation instructions.
    #[serde(rename = "allocation_instructions")]
    pub allocation: u64,
}

/// Process images together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageTotals {
    /// How many.
    pub images: usize,
    /// Their sums.
    #[serde(flatten)]
    pub amounts: Amounts,
    /// What follows from the sums.
    pub tables: Tables,
}

impl Row {
    /// Application instructions of the image the figures are of.
    pub fn application(&self) -> Option<u64> {
        self.figures.as_ref().map(|figures| figures.amounts.owners.program.instructions)
    }

    /// Those before `main`, where that was seen.
    pub fn startup(&self) -> Option<u64> {
        self.figures.as_ref()?.startup_instructions
    }

    /// The same without what comes before `main`, where that is known.
    pub fn application_proper(&self) -> Option<u64> {
        self.application()?.checked_sub(self.startup()?)
    }

    /// Whether the row is of a whole run.
    pub fn is_whole(&self) -> bool {
        self.problem.is_none() && self.figures.is_some()
    }
}
