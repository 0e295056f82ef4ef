//! Reads a command's JSON into cells of a study's figures: one reader a kind of step, over the very figures that the
//! command wrote.
//!
//! A figure that a run does not have (a manager that reports nothing, a run that failed) is no error, and gives no cell;
//! a file that lacks a field which it always has is one, and so is one of another version's schema.

use heaptoll_report::ReportError;
use thiserror::Error;

use self::reading::Reading;
use crate::definition::{Step, StepKind};
use heaptoll_command::labelled::{self, Unreadable};

mod cell_writer;
mod delay;
mod frequency;
mod graph;
mod instructions;
mod ledger;
mod lifetimes;
mod locality;
mod minheap;
mod proximity;
mod ratio;
pub mod reading;
mod reclamation;
mod run;
#[cfg(test)]
mod testing;

/// JSON that is not what the command writes.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Of a command that writes figures.
    #[error("the JSON of heaptoll {command}: {source}")]
    Figures {
        /// Which command.
        command: &'static str,
        /// What is wrong with it.
        source: Unreadable,
    },
    /// Of `heaptoll run`.
    #[error("the JSON of heaptoll run: {0}")]
    Experiment(#[from] ReportError),
}

/// Reads what a command wrote of a step. That of a recording, which does not have the program, is [`recording`]'s.
///
/// # Errors
/// It is not what the command writes, or of another version.
pub fn read(text: &str, step: &Step) -> Result<Reading, ReadError> {
    let found = match step.kind {
        StepKind::Run => return Ok(run::reading(&heaptoll_report::json::read(text.as_bytes())?.0, step)),
        StepKind::Lifetimes | StepKind::Ledger | StepKind::Graph => return Ok(Reading::default()),
        StepKind::Instructions => labelled::read(text).map(|figures| instructions::reading(&figures, step)),
        StepKind::Locality => labelled::read(text).map(|figures| locality::reading(&figures, step)),
        StepKind::Delay => labelled::read(text).map(|figures| delay::reading(&figures, step)),
        StepKind::Frequency => labelled::read(text).map(|figures| frequency::reading(&figures, step)),
        StepKind::Proximity => labelled::read(text).map(|figures| proximity::reading(&figures, step)),
        StepKind::Reclamation => labelled::read(text).map(|figures| reclamation::reading(&figures, step)),
        StepKind::Minheap => labelled::read(text).map(|figures| minheap::reading(&figures, step)),
    };
    found.map_err(|source| ReadError::Figures { command: step.kind.command(), source })
}

/// Reads what `heaptoll trace lifetimes`, `ledger` or `lab replay-graph` wrote of the recording of a program under a manager.
///
/// # Errors
/// It is not what the command writes, or of another version.
pub fn recording(text: &str, step: &Step, program: &str, manager: &str) -> Result<Reading, ReadError> {
    let found = match step.kind {
        StepKind::Ledger => {
            labelled::read(text).map(|figures| ledger::reading(&figures, step, program, manager))
        }
        StepKind::Graph => labelled::read(text).map(|figures| graph::reading(&figures, step, program)),
        _ => labelled::read(text).map(|figures| lifetimes::reading(&figures, step, program, manager)),
    };
    found.map_err(|source| ReadError::Figures { command: step.kind.command(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_another_command_or_version_is_refused_by_name() {
        let step = testing::step(StepKind::Delay);
        let refused = |text: &str| read(text, &step).expect_err("it is refused").to_string();
        let other = refused(r#"{"schema": "heaptoll-minheap/1", "programs": []}"#);
        assert!(other.contains("heaptoll lab delay") && other.contains("heaptoll-minheap/1"), "{other}");
        let later = refused(r#"{"schema": "heaptoll-delay/2", "heaptoll": "999.0.0"}"#);
        assert!(later.contains("heaptoll-delay/2") && later.contains("heaptoll 999.0.0"), "{later}");
        let run = read(r#"{"schema": "x"}"#, &testing::step(StepKind::Run)).expect_err("no experiment");
        assert!(run.to_string().contains("heaptoll run"), "{run}");
    }
}
