//! What one reading of a step's JSON gives.

use crate::figures::Cell;

/// A program, the manager (all when none), and why it has no figures or not all of them.
pub type Absent = (String, Option<String>, String);

/// The figures of a step and what is to be known of them.
#[derive(Debug, Default, PartialEq)]
pub struct Reading {
    /// The figures. Managers are called as the command calls them.
    pub cells: Vec<Cell>,
    /// What was refused, failed, or is not whole.
    pub absent: Vec<Absent>,
    /// How runs were paired, where that is not as it was wanted, and what company does to them: sentences.
    pub pairing: Vec<String>,
    /// Warnings of the command.
    pub warnings: Vec<String>,
}
