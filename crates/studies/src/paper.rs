//! A paper repeated: its experiments, tables, figures and claims as data (`studies/*.toml`), what was measured, and
//! whether each claim holds today. Pure: measuring is the command's, showing the report's.
//!
//! - [`definition`]: a study as its file defines it; [`bundled`] are those that are part of the program.
//! - [`figures`]: what steps measured, whatever command measured it.
//! - [`published`]: the papers' tables, as CSV.
//! - [`effect`]: a ratio between two of the figures, or between many, with an interval.
//! - [`verdict`]: a claim judged by its effects.
//! - [`exhibit`]: a table or figure with the published values and ours.
//! - [`budget`]: which programs and how many repetitions fit into a time.
//! - [`results`]: all of it, as JSON holds it.

pub mod budget;
pub mod bundled;
mod check;
mod company;
pub mod definition;
pub mod effect;
pub mod exhibit;
pub mod figures;
mod known;
mod means;
mod measured;
mod outcome;
mod pairs;
mod parse;
mod placed;
pub mod published;
pub mod results;
mod student;
#[cfg(test)]
mod testing;
mod trend;
mod variant;
pub mod verdict;
pub mod within;
mod words;
