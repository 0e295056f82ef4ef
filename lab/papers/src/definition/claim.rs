//! A claim of a paper and its tests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::Quantity;

/// What the paper claims, and how it is tested.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
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
    /// A sentence of ours, not of the paper; it is counted apart.
    #[serde(default, skip_serializing_if = "is_not")]
    pub ours: bool,
    /// What its words are about: the programs measured, or programs like them.
    #[serde(default)]
    pub estimand: Estimand,
    /// How many collections a collector makes is what is varied or claimed, or the claim is not on what they cost.
    #[serde(default, skip_serializing_if = "is_not")]
    pub varies_collections: bool,
    /// The machine on which the paper saw it, and another on which it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_on: Option<String>,
    /// Exhibits that show it.
    #[serde(default)]
    pub exhibits: Vec<String>,
    /// Why nothing tests it: a system that is not built.
    #[serde(default)]
    pub not_built: Option<String>,
    /// One test that holds is enough, and the claim fails when all fail.
    #[serde(default, skip_serializing_if = "is_not")]
    pub either: bool,
    /// All must hold, or one with `either`. `words` of each describes what it tests.
    #[serde(rename = "test", default)]
    pub tests: Vec<Test>,
}

/// What a mean over programs, or an order, is stated of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimand {
    /// The programs measured: intervals are over repetitions.
    #[default]
    ThesePrograms,
    /// Programs like them: intervals are over programs.
    ProgramsLikeThese,
}

impl Estimand {
    /// The one that is not asked for.
    pub const fn other(self) -> Estimand {
        match self {
            Estimand::ThesePrograms => Estimand::ProgramsLikeThese,
            Estimand::ProgramsLikeThese => Estimand::ThesePrograms,
        }
    }

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Estimand::ThesePrograms => "these programs",
            Estimand::ProgramsLikeThese => "programs like these",
        }
    }
}

/// One test of a claim.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
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
    /// The region is what lies beyond its ends: above `above` or below `below`.
    #[serde(default, skip_serializing_if = "is_not")]
    pub outside: bool,
    /// Of `order`: the programs that those of the quantity are compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

impl Test {
    /// What is tested, of the other programs as well where there are some.
    pub fn whole_quantity(&self) -> Quantity {
        let mut whole = self.quantity.clone();
        whole.programs.extend(self.others.iter().cloned());
        whole
    }

    /// Whether it is which of two figures is larger.
    pub fn is_order(&self) -> bool {
        let quantity = &self.quantity;
        let ratio =
            (quantity.over.is_some() || quantity.metric.contains("ratio")) && self.rule != Rule::Trend;
        ratio && (self.above == Some(1.0) || self.below == Some(1.0))
    }
}

fn is_not(flag: &bool) -> bool {
    !flag
}

/// How comparisons decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
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
    /// The least of the quantity's programs over the largest of `others` lies in the region.
    Order,
}
