//! The commands whose results are facts, and what reads them.

use heaptoll_command::labelled::{self, Unreadable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_facts::{Comparative, Fact, Facts, Metric, Place};
use heaptoll_report::json;
use heaptoll_trace_reports::{ledger, lifetimes, replay};
use heaptoll_traced::{drag, instructions, locality};
use schemars::Labelled;
use thiserror::Error;

/// A command whose results are facts.
pub struct Comparable {
    /// Its name: `lab delay`.
    pub name: &'static str,
    /// What its facts are about.
    pub metrics: &'static [Metric],
    /// Name and version of its figures as JSON.
    pub schema: &'static str,
    read: fn(&str) -> Result<Facts, Unreadable>,
}

/// Those of heaptoll itself, first those that studies use; the laboratory has more.
pub const ALL: [Comparable; 8] = [
    Comparable {
        name: "run",
        metrics: Experiment::METRICS,
        schema: json::ExperimentFile::SCHEMA,
        read: |text| Ok(labelled::read::<json::ExperimentFile>(text)?.experiment.facts()),
    },
    Comparable::of::<instructions::ExactInstructionsFigures>("exact instructions"),
    Comparable::of::<locality::ExactLocalityFigures>("exact locality"),
    Comparable::of::<lifetimes::Figures>("trace lifetimes"),
    Comparable::of::<ledger::LedgerFigures>("ledger"),
    Comparable::of::<drag::ExactDragFigures>("exact drag"),
    Comparable::of::<replay::Figures>("trace replay"),
    Comparable::of::<heaptoll_gate::figures::Figures>("gate"),
];

/// JSON that is not what the command writes.
#[derive(Debug, Error)]
#[error("the JSON of heaptoll {command}: {source}")]
pub struct ReadError {
    command: &'static str,
    source: Unreadable,
}

impl Comparable {
    /// A command by its name and its figures.
    pub const fn of<F: Comparative + Labelled>(name: &'static str) -> Comparable {
        Comparable {
            name,
            metrics: F::METRICS,
            schema: F::SCHEMA,
            read: |text| Ok(labelled::read::<F>(text)?.facts()),
        }
    }

    /// A metric of its facts.
    pub fn metric(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|known| known.is(name))
    }

    /// A place of a metric that has many: `at 2M`.
    pub fn place(&self, metric: &str, at: f64) -> String {
        self.metric(metric).map_or(Place::Number, |known| known.place).words(at)
    }

    /// What the metrics of these facts are, a sentence each.
    pub fn notes<'f>(&self, facts: impl IntoIterator<Item = &'f Fact>) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for fact in facts {
            let note = self.metric(&fact.metric).map(|known| format!("{}: {}.", fact.metric, known.about));
            notes.extend(note.filter(|note| !notes.contains(note)));
        }
        notes
    }

    /// The words of its name, with which a command line begins.
    pub fn words(&self) -> Vec<String> {
        self.name.split(' ').map(str::to_owned).collect()
    }

    /// Reads what the command wrote.
    ///
    /// # Errors
    /// It is not what the command writes, or of another version.
    pub fn facts(&self, text: &str) -> Result<Facts, ReadError> {
        (self.read)(text).map_err(|source| ReadError { command: self.name, source })
    }
}
