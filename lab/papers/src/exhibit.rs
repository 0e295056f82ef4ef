//! A table or figure with the published values and ours, ready to be shown.

mod body;
mod grid;
mod lines;
mod list;
mod originals;
mod source;

pub use body::{Body, Ours, Pair};
pub(crate) use originals::kin_note;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::source::Source;
use super::definition::{Exhibit, Form, Study};
use super::figures::{Absent, Figures};

/// An exhibit with its figures.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Shown {
    /// Exhibit's id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Sentences above it.
    pub text: Vec<String>,
    /// The commands that repeat it.
    pub commands: Vec<String>,
    /// What stands in it.
    pub body: Body,
    /// Below it: what is missing and why, rank agreement with the paper.
    pub notes: Vec<String>,
}

/// An exhibit of a study with what was measured. `commands` are those that repeat it, by step's id; `absent` has the
/// reasons why steps and cells are not there.
pub fn show(
    study: &Study,
    exhibit: &Exhibit,
    figures: &Figures,
    commands: &BTreeMap<String, String>,
    absent: &Absent,
) -> Shown {
    let source = Source { study, exhibit, figures, absent };
    let (body, mut notes) = match exhibit.form {
        Form::Table => grid::table(&source),
        Form::Bars => grid::bars(&source),
        Form::Lines => lines::lines(&source),
        Form::List => list::list(&source),
    };
    if let (Some(base), Form::Table | Form::Bars | Form::Lines) = (&exhibit.relative_to, exhibit.form) {
        let variant = exhibit.relative_variant.as_ref().map(|variant| format!(" with the {variant} program"));
        notes.insert(0, format!("Ratios are to {base}{}.", variant.unwrap_or_default()));
    }
    notes.extend(originals::note(study, exhibit));
    notes.extend(kin_note(study, exhibit));
    let steps = exhibit.steps();
    for step in &steps {
        if let Some(why) = absent.of_step(step) {
            notes.push(format!("Step {step}: {why}."));
        }
    }
    Shown {
        id: exhibit.id.clone(),
        title: exhibit.title.clone(),
        text: exhibit.text.clone(),
        commands: steps.iter().filter_map(|step| commands.get(*step).cloned()).collect(),
        body,
        notes,
    }
}

#[cfg(test)]
#[path = "exhibit_tests.rs"]
mod tests;
