//! Which programs and how many repetitions of each step fit into a time, and what that costs in precision.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::definition::{Kind, Step, Study};

/// A step as it is to be run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Planned {
    /// Study and step.
    pub study: String,
    /// Step's id.
    pub step: String,
    /// Programs, the first of the step's list.
    pub programs: usize,
    /// Of so many.
    pub of_programs: usize,
    /// Managers, the first of the step's list.
    pub managers: usize,
    /// Of so many.
    pub of_managers: usize,
    /// Repetitions.
    pub repetitions: u32,
    /// Of so many.
    pub of_repetitions: u32,
    /// Size of the inputs.
    pub size: String,
    /// Guess, seconds.
    pub seconds: f64,
    /// It is interrupted after so many seconds, and what it has is kept.
    pub deadline_s: f64,
}

/// How much of the studies is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// The shortest form: least programs and managers, smallest inputs, two repetitions.
    Quick,
    /// What fits into so many seconds.
    Seconds(f64),
    /// All of it.
    Whole,
}

/// A step that there is no time for.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Study.
    pub study: String,
    /// Step's id.
    pub step: String,
    /// Why, with its guess and the time there is.
    pub why: String,
}

/// What is to be run, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Steps that are run.
    pub planned: Vec<Planned>,
    /// Steps that are not.
    pub left_out: Vec<LeftOut>,
}

/// Whether a program has a size of input.
pub type HasSize<'a> = &'a dyn Fn(&str, &str) -> bool;

/// How much slower than the guesses this machine is, by kind of step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Speed(BTreeMap<Kind, (f64, f64)>);

impl Speed {
    /// A step of this kind was guessed to take `guessed` seconds and took `took`.
    pub fn learn(&mut self, kind: Kind, guessed: f64, took: f64) {
        let sum = self.0.entry(kind).or_default();
        *sum = (sum.0 + guessed, sum.1 + took);
    }
}

/// The steps of the studies (without those in `done`, by id) in the form asked for. Programs of the steps that are not installed must
/// have been taken out before.
pub fn plan(
    studies: &[Study],
    length: Length,
    has_size: HasSize<'_>,
    speed: &Speed,
    done: &BTreeSet<String>,
) -> Plan {
    let _ = (length, has_size, speed, done);
    let _ = studies;
    Plan::default()
}

/// What the form of a step costs in precision, in words; empty when it is whole.
pub fn precision(planned: &Planned, step: &Step) -> String {
    let _ = (planned, step);
    String::new()
}
