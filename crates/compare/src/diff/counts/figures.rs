//! The figures of a comparison of instruction counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_gate::differences::Differences;
use heaptoll_gate::stack_pair::StackPair;

/// What the JSON holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffCountsFigures {
    /// The file from which changes are counted.
    pub base: String,
    /// The file that is compared with it.
    pub new: String,
    /// Programs under managers that both have.
    pub pairs: Vec<Pair>,
    /// What the reader of the figures must know.
    pub warnings: Vec<String>,
}

/// One program under one manager, in both files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The program's name.
    pub program: String,
    /// The manager.
    pub manager: String,
    /// Instructions by function, of all process images.
    pub functions: Differences,
    /// Instructions of the libraries of C and C++ by the function that called them.
    pub library: Differences,
    /// Routines of the malloc family that either called, of the process image with most instructions.
    pub routines: Vec<Routine>,
    /// All functions with both; for the page.
    #[serde(skip)]
    pub stacks: StackPair,
}

/// A routine of the malloc family in both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Routine {
    /// `malloc`, `operator new`, ...
    pub routine: String,
    /// Calls in the base.
    pub base_calls: u64,
    /// Calls in the new file.
    pub new_calls: u64,
    /// Their instructions in the base, collections included.
    pub base_instructions: u64,
    /// Their instructions in the new file.
    pub new_instructions: u64,
}
