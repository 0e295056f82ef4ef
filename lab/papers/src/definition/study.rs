//! A whole study.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::exhibit::Exhibit;
use super::step::Step;

/// A paper repeated.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// `zorn1992`: the word on the command line.
    pub name: String,
    /// The earliest version of heaptoll that can carry it out; any where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heaptoll: Option<String>,
    /// Short title of its section.
    pub title: String,
    /// Authors, title, place and year of the paper.
    pub source: String,
    /// The paper's questions and how they are answered here; paragraphs.
    pub about: Vec<String>,
    /// Our names for the paper's.
    #[serde(default)]
    pub names: Names,
    /// Programs that allocate in another way than the paper's: means are also shown without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<String>,
    /// Why exhibits show other programs than the paper's own: what follows a colon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kin: Option<String>,
    /// What its abstract states, sentence by sentence.
    #[serde(rename = "abstract", default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<Sentence>,
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

/// A sentence of the abstract.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    /// In our words.
    pub words: String,
    /// The claims that answer it, by id.
    pub claims: Vec<String>,
    /// What was measured today, in sentences that are true whatever the figures are: `{claim}` is the figure of its first
    /// test, `{claim:2}` of its second, and of several comparisons the least and the most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<String>,
    /// What has changed since the paper, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// What stands here for the paper's programs and managers: the paper's name (as in its CSV) to ours.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
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

/// A sentence with figures in place of `{claim}` and `{claim:test}`; none where one is not there. Tests count from 0.
pub fn filled(sentence: &str, figure: impl Fn(&str, usize) -> Option<String>) -> Option<String> {
    let mut pieces = sentence.split('{');
    let mut whole = pieces.next()?.to_owned();
    for piece in pieces {
        let (place, rest) = piece.split_once('}')?;
        let (claim, test) = place.split_once(':').unwrap_or((place, "1"));
        whole += &figure(claim, test.parse::<usize>().ok()?.checked_sub(1)?)?;
        whole += rest;
    }
    Some(whole)
}

impl Study {
    /// Whether it repeats what was published: an exhibit shows a published value.
    pub fn repeats(&self) -> bool {
        self.exhibits.iter().any(|exhibit| exhibit.published.is_some())
    }

    /// One of its steps.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// The steps that a user's word names: the one of that id, or those that an exhibit of that label shows.
    pub fn named(&self, word: &str) -> Vec<&str> {
        let is_meant =
            |exhibit: &&Exhibit| exhibit.label().is_some_and(|label| label.eq_ignore_ascii_case(word));
        match self.step(word) {
            Some(step) => vec![&step.id],
            None => self.exhibits.iter().filter(is_meant).flat_map(Exhibit::steps).collect(),
        }
    }
}
