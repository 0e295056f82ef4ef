//! A study as its file defines it: what is run, what is shown, what is claimed. `docs/study-format.md` describes the
//! file.

use std::collections::BTreeMap;

use heaptoll_experiment::experiment::Pairing;
use heaptoll_statistics::FEWEST_PAIRS;
use serde::{Deserialize, Serialize};

pub use self::exhibit::{Divisor, Exhibit, Form, ListRow, MetricColumn, Published, Shown};

mod exhibit;

/// A paper repeated.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// `zorn1992`: the word on the command line.
    pub name: String,
    /// Short title of its section.
    pub title: String,
    /// Authors, title, place and year of the paper.
    pub source: String,
    /// The paper's questions and how they are answered here; paragraphs.
    pub about: Vec<String>,
    /// Our names for the paper's.
    #[serde(default)]
    pub names: Names,
    /// What is run.
    #[serde(rename = "step", default)]
    pub steps: Vec<Step>,
    /// Tables and figures, in the paper's order.
    #[serde(rename = "exhibit", default)]
    pub exhibits: Vec<Exhibit>,
    /// What the paper claims.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// What stands here for the paper's programs and managers: the paper's name (as in its CSV) to ours.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Programs of the catalog; the key of a table with two key columns is `cfrac optimized`. A key that ends in a
    /// blank and a manager's name in the paper is of that program under that manager only, and goes first.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// Managers, as stacks.
    #[serde(default)]
    pub managers: BTreeMap<String, String>,
    /// Why a program, a manager or a column of the paper has nothing here: its name and a few words.
    #[serde(default)]
    pub missing: BTreeMap<String, String>,
}

/// One command of heaptoll.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// By which exhibits and claims name it; no two steps of any studies share one, for figures are kept by it.
    pub id: String,
    /// Which command.
    pub kind: StepKind,
    /// Programs of the catalog, what can least be left out first.
    pub programs: Vec<String>,
    /// As many of them are run in the shortest form.
    #[serde(default = "one")]
    pub least_programs: usize,
    /// As many managers, the first of the list, in the shortest form; all when left out.
    #[serde(default)]
    pub least_managers: Option<usize>,
    /// Stacks (`docs/stacks.md`).
    #[serde(default)]
    pub managers: Vec<String>,
    /// Size of the inputs: `tiny`, `quick`, `demo`, `full`.
    #[serde(default = "quick")]
    pub size: String,
    /// Repetitions (runs, of `proximity`) when there is time; at least 6 where there is any. Not used by exact commands.
    #[serde(default = "ten")]
    pub repetitions: u32,
    /// Further arguments of the command.
    #[serde(default)]
    pub options: Vec<String>,
    /// How many times as long as the planner's first guess it takes; 1 when unknown.
    #[serde(default = "unit")]
    pub heaviness: f64,
    /// What is left out last when time is short: 1 is kept longest.
    #[serde(default = "middle")]
    pub priority: u32,
    /// How the runs of `run` are paired. Where the file leaves it out: in lockstep where a claim compares the CPU time of
    /// managers on one program, else interleaved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairing: Option<Pairing>,
}

impl Step {
    /// Whether its runs are in lockstep, in so many repetitions: from fewer than can claim something nothing is compared,
    /// and a block takes longer than the same runs one after the other.
    pub fn runs_in_lockstep(&self, repetitions: u32) -> bool {
        let interval = repetitions as usize >= FEWEST_PAIRS;
        self.kind == StepKind::Run && self.pairing == Some(Pairing::Lockstep) && interval
    }
}

/// The commands that steps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// `heaptoll run`: timed repetitions; the first manager is the baseline.
    Run,
    /// `heaptoll instructions`.
    Instructions,
    /// `heaptoll locality`.
    Locality,
    /// `heaptoll record`, then `lifetimes` of the trace.
    Lifetimes,
    /// `heaptoll delay`.
    Delay,
    /// `heaptoll frequency`.
    Frequency,
    /// `heaptoll proximity`.
    Proximity,
    /// `heaptoll minheap`.
    Minheap,
}

/// Something measured: a figure, or the ratio of two.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Step.
    pub step: String,
    /// Metric.
    pub metric: String,
    /// Programs (without the variant of a side); empty: all that the step ran and both sides have.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Numerator.
    pub of: Side,
    /// Denominator; none for metrics that are ratios already, and for plain figures.
    #[serde(default)]
    pub over: Option<Side>,
    /// How several managers of `over` count on one program.
    #[serde(default)]
    pub against: Against,
    /// Place, of metrics with many; empty: all, each a comparison of its own.
    #[serde(default)]
    pub at: Vec<f64>,
}

/// One side of a ratio.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Managers. Empty in a numerator (or a plain figure): every one of the step. Empty in a denominator: the same as
    /// the numerator's, which then differs in variant, program or metric.
    #[serde(default)]
    pub managers: Vec<String>,
    /// Variant of the programs: `cfrac` is `cfrac:gc`. Without it the program as it is named.
    #[serde(default)]
    pub variant: Option<String>,
    /// One program in place of all.
    #[serde(default)]
    pub program: Option<String>,
    /// Another metric than the quantity's.
    #[serde(default)]
    pub metric: Option<String>,
}

/// Several managers in a denominator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// Each is a comparison of its own.
    #[default]
    Each,
    /// The one with the smallest figure on that program.
    Lowest,
    /// The one with the largest.
    Highest,
}

/// What the paper claims, and how it is tested.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its anchor.
    pub id: String,
    /// Number or place in the paper: `§5.1`, `Allocation myth 1`.
    pub place: String,
    /// One sentence, in our words. A claim that something is a myth is worded as the myth, with `myth` set.
    pub words: String,
    /// The paper calls this false.
    #[serde(default)]
    pub myth: bool,
    /// Exhibits that show it.
    #[serde(default)]
    pub exhibits: Vec<String>,
    /// Why nothing tests it: a system that is not built.
    #[serde(default)]
    pub not_built: Option<String>,
    /// All must hold. `words` of each describes what it tests.
    #[serde(rename = "test", default)]
    pub tests: Vec<Test>,
}

/// One test of a claim.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// Its question, so that `yes` means that the claim holds: `bw16 needs more memory than each explicit manager`.
    pub words: String,
    /// What is tested.
    pub quantity: Quantity,
    /// How.
    pub rule: Rule,
    /// The claim's region: above this.
    #[serde(default)]
    pub above: Option<f64>,
    /// And below this.
    #[serde(default)]
    pub below: Option<f64>,
    /// Of `most`: the share of comparisons that must be in the region, 0.5 (exclusive) when left out.
    #[serde(default)]
    pub share: Option<f64>,
}

/// How comparisons decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The geometric mean over programs of each pair of managers lies in the region.
    Mean,
    /// Every comparison does.
    All,
    /// One at least does.
    Some,
    /// More than a share of them do.
    Most,
    /// One lies above `above` and another below `below`: it depends.
    Both,
    /// The slope of log figure over log `at` lies in the region (`at` doubled: figure times two to the slope).
    Trend,
}

/// The studies' files, part of the program.
const STUDIES: &[(&str, &str)] = &[
    ("studies/zorn1992.toml", include_str!("../../../../studies/zorn1992.toml")),
    ("studies/detlefs1994.toml", include_str!("../../../../studies/detlefs1994.toml")),
    ("studies/boehm-myths.toml", include_str!("../../../../studies/boehm-myths.toml")),
    ("studies/sareen2022.toml", include_str!("../../../../studies/sareen2022.toml")),
];

/// What is wrong with a study's file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It is no TOML, or has a field that a study has not.
    #[error("{file}: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// The parser's message, with line and column.
        error: Box<toml::de::Error>,
    },
    /// Its content is impossible.
    #[error("{file}: {place}: {what}")]
    Wrong {
        /// The file.
        file: String,
        /// Where in it: `claim cost, test 2`.
        place: String,
        /// What is wrong, and what may stand there.
        what: String,
    },
}

impl Study {
    /// A study from the text of its file, checked. `file` is what errors call it.
    pub fn parse(text: &str, file: &str) -> Result<Study, Fault> {
        let mut study: Study = toml::from_str(text)
            .map_err(|error| Fault::Unreadable { file: file.into(), error: Box::new(error) })?;
        study.check(file)?;
        for at in 0..study.steps.len() {
            let step = &study.steps[at];
            if step.kind == StepKind::Run && step.pairing.is_none() && study.compares_managers(&step.id) {
                study.steps[at].pairing = Some(Pairing::Lockstep);
            }
        }
        Ok(study)
    }

    /// Whether a claim compares the CPU time of different managers on one program of a step.
    fn compares_managers(&self, step: &str) -> bool {
        let tests = self.claims.iter().flat_map(|claim| &claim.tests);
        tests.map(|test| &test.quantity).filter(|quantity| quantity.step == step).any(|quantity| {
            let Some(over) = &quantity.over else { return false };
            let is_cpu =
                |side: &Side| side.metric.as_ref().unwrap_or(&quantity.metric) == super::figures::AT_ONCE;
            let of = &quantity.of;
            let same_program = of.variant == over.variant && of.program == over.program;
            is_cpu(of) && is_cpu(over) && same_program && !over.managers.is_empty()
        })
    }

    /// One of its steps.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }
}

/// Every study, in the order of the papers.
pub fn all() -> Result<Vec<Study>, Fault> {
    let studies: Vec<Study> =
        STUDIES.iter().map(|(file, text)| Study::parse(text, file)).collect::<Result<_, _>>()?;
    super::check::apart(&studies, STUDIES)?;
    Ok(studies)
}

fn one() -> usize {
    1
}

fn ten() -> u32 {
    10
}

fn unit() -> f64 {
    1.0
}

fn middle() -> u32 {
    2
}

fn quick() -> String {
    "quick".into()
}
