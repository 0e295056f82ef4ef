//! What steps measured, whatever command measured it: facts by step, and why some are missing.

use std::collections::BTreeSet;
use std::ops::Deref;

use heaptoll_facts::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that a step measured.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Cell {
    /// Step's id.
    pub step: String,
    /// What it measured.
    #[serde(flatten)]
    pub fact: Fact,
}

impl Deref for Cell {
    type Target = Fact;

    fn deref(&self) -> &Fact {
        &self.fact
    }
}

/// All that was measured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Figures {
    /// In the order of steps.
    pub cells: Vec<Cell>,
}

/// Why there is no figure where one is needed, and whose programs those are that there are. Only the reasons are stored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Absent {
    /// Of the same figure, the last counts.
    gaps: Vec<Gap>,
    #[serde(skip)]
    thinned: BTreeSet<String>,
    #[serde(skip)]
    of_the_paper: BTreeSet<String>,
}

/// Figures that are missing.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
struct Gap {
    /// Of this step.
    step: String,
    /// Of this program; of all without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// Under this manager; under all without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manager: Option<String>,
    /// Why.
    why: String,
}

impl Absent {
    /// A step was left out or failed; `why` is what follows a colon: `there was no time for it`.
    pub fn step(&mut self, step: &str, why: &str) {
        self.gaps.push(Gap { step: step.into(), program: None, manager: None, why: why.into() });
    }

    /// A plan chose which programs of a step ran.
    pub fn thin(&mut self, step: &str) {
        self.thinned.insert(step.into());
    }

    /// Whether a plan chose which programs of a step ran.
    pub fn is_thinned(&self, step: &str) -> bool {
        self.thinned.contains(step)
    }

    /// The paper's own programs could run in a step.
    pub fn name_programs(&mut self, step: &str) {
        self.of_the_paper.insert(step.into());
    }

    /// Whether a step names the paper's own programs, so that others are kin.
    pub fn names_programs(&self, step: &str) -> bool {
        self.of_the_paper.contains(step)
    }

    /// A program of a step was left out or refused, under one manager or, with `None`, under all.
    pub fn cell(&mut self, step: &str, program: &str, manager: Option<&str>, why: &str) {
        let (program, manager) = (Some(program.into()), manager.map(str::to_owned));
        self.gaps.push(Gap { step: step.into(), program, manager, why: why.into() });
    }

    /// Why a step has no figures.
    pub fn of_step(&self, step: &str) -> Option<&str> {
        self.of(step, None, None)
    }

    fn of(&self, step: &str, program: Option<&str>, manager: Option<&str>) -> Option<&str> {
        let is = |gap: &&Gap| {
            gap.step == step && gap.program.as_deref() == program && gap.manager.as_deref() == manager
        };
        self.gaps.iter().rev().find(is).map(|gap| gap.why.as_str())
    }

    /// Why a program under a manager has none.
    pub fn of_cell(&self, step: &str, program: &str, manager: &str) -> Option<&str> {
        let of = |manager: Option<&str>| self.of(step, Some(program), manager);
        of(Some(manager)).or_else(|| of(None)).or_else(|| self.of_step(step))
    }

    /// Whether no reason is known.
    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The steps of which something is missing.
    pub fn steps(&self) -> BTreeSet<String> {
        self.gaps.iter().map(|gap| gap.step.clone()).collect()
    }

    /// Leaves out the reasons of other steps.
    pub fn retain_steps(&mut self, stays: impl Fn(&str) -> bool) {
        self.gaps.retain(|gap| stays(&gap.step));
    }

    /// With another's reasons of these steps.
    pub fn extend(&mut self, mut other: Absent, of: impl Fn(&str) -> bool) {
        other.retain_steps(of);
        self.gaps.extend(other.gaps);
    }
}
