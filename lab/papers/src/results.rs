//! A study's whole result: what the JSON file holds, and what pages are made of, now or later.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::budget::Planned;
use super::definition::Study;
use super::exhibit::Shown;
use super::figures::{Absent, Figures};
use super::verdict::{Answer, Verdict};

schemars::labelled!(Results, "heaptoll-study/1");

/// Everything.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Results {
    /// When it began, seconds since 1970.
    pub begun_unix_s: f64,
    /// How long it took.
    pub seconds: f64,
    /// The time it was given; none for the whole.
    pub budget_s: Option<f64>,
    /// Version of heaptoll.
    pub heaptoll_version: String,
    /// The command that repeats it.
    pub command: String,
    /// Machine, kernel, C library, versions of managers and programs: name and value.
    pub facts: Vec<(String, String)>,
    /// All steps were run to their end.
    pub complete: bool,
    /// What the reader must know first: the machine was busy, steps were cut.
    pub warnings: Vec<String>,
    /// Each paper.
    #[serde(rename = "chapters")]
    pub papers: Vec<PaperResult>,
    /// Each step, in the order run.
    pub steps: Vec<Ran>,
    /// What they measured.
    pub figures: Figures,
    /// Why they lack others.
    #[serde(default, skip_serializing_if = "Absent::is_empty")]
    pub absent: Absent,
}

impl Results {
    /// The verdicts of a paper. Where steps were not run, with --only or after Ctrl-C, without claims that none of the
    /// others tests.
    pub fn judged<'a>(&'a self, paper: &'a PaperResult) -> impl Iterator<Item = &'a Verdict> {
        let ran = |id: &String| self.steps.iter().any(|ran| ran.planned.step == *id);
        let whole = paper.study.steps.iter().all(|step| ran(&step.id));
        paper.verdicts.iter().filter(move |verdict| {
            let mut claims = paper.study.claims.iter().filter(|claim| claim.id == verdict.claim);
            let is_run = claims.any(|claim| claim.tests.iter().any(|test| ran(&test.quantity.step)));
            whole || is_run || verdict.answer != Answer::NotMeasured
        })
    }

    /// Steps of its studies that gave figures, and all of them.
    pub fn steps_run(&self) -> (usize, usize) {
        let ran = self.steps.iter().filter(|ran| ran.has_figures()).count();
        (ran, self.papers.iter().map(|paper| paper.study.steps.len()).sum())
    }
}

/// One paper's results.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PaperResult {
    /// As its file defines it.
    #[serde(deserialize_with = "of_any_version")]
    pub study: Study,
    /// In the order of its claims.
    pub verdicts: Vec<Verdict>,
    /// In the order of its exhibits.
    pub exhibits: Vec<Shown>,
}

/// Fields of studies that are no more; results of earlier versions have them.
const GONE: [&str; 2] = ["least_programs", "least_managers"];

/// Reads a study that any version wrote.
fn of_any_version<'of, D: Deserializer<'of>>(reader: D) -> Result<Study, D::Error> {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !GONE.contains(&name.as_str()));
                fields.values_mut().for_each(forget);
            }
            Value::Array(values) => values.iter_mut().for_each(forget),
            _ => {}
        }
    }
    let mut study = Value::deserialize(reader)?;
    forget(&mut study);
    serde_json::from_value(study).map_err(D::Error::custom)
}

/// A step that was run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Ran {
    /// As planned.
    pub planned: Planned,
    /// The command that repeats it by itself.
    pub command: String,
    /// How long it took.
    pub seconds: f64,
    /// How it ended.
    pub ending: Ended,
    /// The commit of the heaptoll that measured it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What the shorter form costs: `6 of 10 repetitions: intervals 1.6 times as wide`; empty for the whole.
    pub precision: String,
    /// Programs and managers that could not be run, and why; warnings of the command.
    pub warnings: Vec<String>,
    /// The paper's own programs that ran, by what stands for them elsewhere: their figures are under that name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub originals: BTreeMap<String, String>,
    /// Programs that ran, by those of the step that could not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reserves: BTreeMap<String, String>,
}

impl Ran {
    /// Whether it gave figures.
    pub fn has_figures(&self) -> bool {
        matches!(self.ending, Ended::Whole | Ended::Cut)
    }
}

/// Adds what decides whose programs were measured: the steps that a plan thinned, or that were cut, and those for which
/// these studies, as they are written, name the paper's own programs.
pub(super) fn add_programs(absent: &mut Absent, studies: &[Study], steps: &[Ran]) {
    for Ran { planned, ending, .. } in steps {
        if planned.programs < planned.of_programs || *ending == Ended::Cut {
            absent.thin(&planned.step);
        }
    }
    let named = studies.iter().flat_map(|study| &study.steps).filter(|step| !step.originals.is_empty());
    named.for_each(|step| absent.name_programs(&step.id));
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// To its end.
    Whole,
    /// At its deadline or by Ctrl-C; what it had is in.
    Cut,
    /// It gave no figures.
    Failed,
    /// There was no time for it.
    LeftOut,
}
