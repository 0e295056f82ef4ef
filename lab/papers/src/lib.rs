//! Whole papers repeated: a paper's experiments, tables, figures and claims are data (`studies/*.toml`); each of its
//! steps is one command of heaptoll, run as a child, so that every figure has a command that repeats it and a study can
//! do nothing that a user could not.
//!
//! What is run, and how:
//! - [`definition`]: a study as its file defines it; [`bundled`] are those that are part of the program.
//! - [`budget`]: which programs and how many repetitions fit into a time.
//! - [`run`]: a plan as a value, the folder that keeps it, its steps one after the other.
//! - [`originals`]: the paper's own programs in place of those that stand for them.
//!
//! What follows from it, as functions of their arguments alone:
//! - [`figures`]: what steps measured: the facts of their commands.
//! - [`heaptoll_laboratory::published`]: the papers' tables, as CSV.
//! - [`effect`]: a ratio between two of the figures, or between many, with an interval.
//! - [`estimand`]: what means are stated of, and which of the two the figures can decide.
//! - [`verdict`]: a claim judged by its effects.
//! - [`exhibit`]: a table or figure with the published values and ours.
//! - [`results`]: all of it, as JSON holds it; [`stored`] reads it again.
//! - [`page`]: all of it, as the terminal and a page show it.

mod again;
mod answer;
pub mod budget;
pub mod bundled;
mod check;
mod collections;
mod company;
pub mod definition;
mod derived;
pub mod effect;
pub mod estimand;
pub mod exhibit;
pub mod figures;
mod first_touches;
mod found;
pub mod joined;
mod means;
mod measured;
#[cfg(test)]
mod metrics_page;
mod needs;
mod open;
mod order;
pub mod originals;
mod outcome;
pub mod page;
mod pairs;
mod parse;
mod placed;
mod region;
pub mod results;
pub mod run;
mod sets;
pub mod stored;
#[cfg(test)]
mod testing;
mod trend;
mod variant;
pub mod verdict;
pub mod within;
