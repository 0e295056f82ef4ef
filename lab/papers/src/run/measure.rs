//! One step: its command is run, its output is read, and missing figures get a reason.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::budget::{Planned, precision};
use crate::definition::Step;
use crate::results::{Ended as Ending, Ran};
use heaptoll_experiment::manager::{self, Manager};
use rustix::process::Signal;

use super::child::EndCause;
use super::commands::Extent;
use super::folder::{Ended, StepFolder};
use super::parts;
use super::started::{Heaptoll, MeasureError, StepFigures, forget, found, text, with_files};
use crate::figures::Cell;
use crate::originals::name_kin;

/// What all steps share.
pub struct Measure<'a> {
    /// Starts commands.
    pub heaptoll: Heaptoll<'a>,
    /// The commit that it was built of, where that is known.
    pub commit: Option<&'a str>,
    /// Managers by name.
    pub known: &'a [Manager],
    /// Seed of random choices.
    pub seed: u64,
    /// Folder with the user's own catalog entries.
    pub catalog: Option<&'a Path>,
}

impl Measure<'_> {
    /// Runs a step in its folder; `poll` is called at intervals. One that was begun there is resumed where that is
    /// possible.
    ///
    /// # Errors
    /// heaptoll cannot be started, or files cannot be written.
    pub fn step(
        &self,
        step: &Step,
        planned: &Planned,
        folder: &StepFolder,
        poll: &mut dyn FnMut(),
    ) -> Result<Ended, MeasureError> {
        let in_parts = parts::has(step.kind);
        let goes_on = !in_parts && folder.planned().is_some() && folder.file(ROWS).exists();
        // The file of rows fixes what is run.
        let planned = match folder.planned() {
            Some(begun) if goes_on => {
                Planned { deadline_s: planned.deadline_s, seconds: planned.seconds, ..begun }
            }
            _ => planned.clone(),
        };
        // Its figures from before it was stopped, and its time: that of parts is kept with them.
        let earlier = folder.ended().filter(|_| goes_on || in_parts);
        folder.begin(&planned)?;
        let extent = Extent { step, planned: &planned, seed: self.seed, catalog: self.catalog };
        let begun = Instant::now();
        let until = deadline(begun, planned.deadline_s);
        let mut found = if in_parts {
            parts::measured(&self.heaptoll, self.commit, &extent, folder, until, poll)?
        } else {
            self.one_command(&extent, folder, goes_on, until, poll)?
        };
        let took = begun.elapsed().as_secs_f64();
        if !in_parts {
            found.seconds = took + earlier.as_ref().map_or(0.0, |earlier| earlier.ran.seconds);
        }
        self.name_managers(&extent, &mut found);
        let originals = name_kin(&mut found.facts, step);
        explain(&extent, &mut found);
        // No reasons why a figure is missing.
        found.warnings.append(&mut found.facts.pairing);
        let ending = match found.ended {
            Some(EndCause::Deadline | EndCause::Interrupt) => Ending::Cut,
            _ if found.facts.measured.is_empty() => Ending::Failed,
            _ => Ending::Whole,
        };
        // Stopped again before it could write: its rows are still there, and so are its figures.
        if let Some(mut earlier) =
            earlier.filter(|_| ending == Ending::Cut && found.facts.measured.is_empty())
        {
            earlier.ran.seconds += took;
            earlier.interrupted = found.ended == Some(EndCause::Interrupt);
            folder.end(&earlier)?;
            return Ok(earlier);
        }
        let why = match ending {
            Ending::Failed => Some(found.why.unwrap_or_else(|| "it gave no figures".into())),
            Ending::Cut if found.facts.measured.is_empty() => Some("it was cut before it had figures".into()),
            _ => None,
        };
        found.warnings.extend(why.iter().filter(|_| ending == Ending::Failed).cloned());
        found.warnings.dedup();
        let cells = found.facts.measured.into_iter().map(|fact| Cell { step: step.id.clone(), fact });
        let ended = Ended {
            ran: Ran {
                command: extent.repeat(),
                precision: precision(&planned, step),
                seconds: found.seconds,
                ending,
                commit: self.commit.map(str::to_owned),
                warnings: found.warnings,
                originals,
                reserves: BTreeMap::new(),
                planned,
            },
            interrupted: found.ended == Some(EndCause::Interrupt),
            why,
            cells: cells.collect(),
            absent: found.facts.absent,
        };
        folder.end(&ended)?;
        Ok(ended)
    }

    fn one_command(
        &self,
        extent: &Extent,
        folder: &StepFolder,
        goes_on: bool,
        until: Option<Instant>,
        poll: &mut dyn FnMut(),
    ) -> Result<StepFigures, MeasureError> {
        let (json, rows, out) = (folder.file("figures.json"), folder.file(ROWS), folder.file("tables.txt"));
        forget(&json);
        if goes_on {
            let mut words = extent.step.kind.command().words();
            words.extend(["--resume", &text(&rows), "--json", &text(&json)].map(str::to_owned));
            // What repetitions make no more precise has its own number of them.
            if extent.step.kind.is_timed() {
                words.extend(["-n".to_owned(), extent.planned.repetitions.to_string()]);
            }
            let (end, messages) = self.heaptoll.run(&words, folder, &out, until, Signal::INT, poll)?;
            // Rows that cannot be resumed (the command had not got so far) are made again.
            if json.exists() || end.why != EndCause::Itself {
                return Ok(found(extent, &json, end, &messages));
            }
        }
        let words = with_files(extent, extent.arguments(), &json, &rows);
        let (end, messages) = self.heaptoll.run(&words, folder, &out, until, Signal::INT, poll)?;
        Ok(found(extent, &json, end, &messages))
    }

    /// Commands call a stack by its first spelling (`sweep/mimalloc3` for `sweep/mimalloc`); the study by its own.
    fn name_managers(&self, extent: &Extent, found: &mut StepFigures) {
        for wanted in extent.managers().iter().filter(|name| !manager::is_group(self.known, name)) {
            let Ok(manager) = manager::find(self.known, wanted) else { continue };
            if manager.name == *wanted {
                continue;
            }
            for fact in found.facts.measured.iter_mut().filter(|fact| fact.manager == manager.name) {
                fact.manager.clone_from(wanted);
            }
            for (_, of, _) in &mut found.facts.absent {
                if of.as_ref() == Some(&manager.name) {
                    *of = Some(wanted.clone());
                }
            }
        }
    }
}

/// Rows of commands that keep them.
const ROWS: &str = "rows.db";

fn deadline(begun: Instant, seconds: f64) -> Option<Instant> {
    let after = Duration::try_from_secs_f64(seconds).ok()?;
    begun.checked_add(after)
}

/// Whether a text has a name as a whole word: `release` does not have `lea`.
fn mentions(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "-_:/=,.+".contains(c);
    text.split(|c| !part(c)).any(|word| word == name || word.trim_end_matches([':', ',', '.']) == name)
}

/// Gives each program under each manager that has no figure a reason.
fn explain(extent: &Extent, found: &mut StepFigures) {
    for program in extent.programs() {
        for manager in extent.managers() {
            let has =
                found.facts.measured.iter().any(|fact| fact.program == *program && fact.manager == *manager);
            let is_covered = found
                .facts
                .absent
                .iter()
                .any(|(other, of, _)| other == program && of.as_ref().is_none_or(|of| of == manager));
            if has || is_covered {
                continue;
            }
            let runs = extent.step.run_as(program);
            let names = |warning: &&String| {
                (mentions(warning, program) || mentions(warning, runs)) && mentions(warning, manager)
            };
            let why = match found.warnings.iter().find(names) {
                Some(warning) => warning.clone(),
                None => match found.ended {
                    Some(EndCause::Deadline) => "the step was cut before it was run".into(),
                    Some(EndCause::Interrupt) => "Ctrl-C came before it was run".into(),
                    _ => found.why.clone().unwrap_or_else(|| "the command gave no figure of it".into()),
                },
            };
            found.facts.lack(program, manager, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A warning about a release was once given as the reason why `lea` had no figure.
    #[test]
    fn a_name_is_a_word_of_its_own() {
        assert!(mentions("lea on cfrac: refused", "lea") && mentions("cfrac under lea: it failed", "cfrac"));
        assert!(mentions("cfrac under sweep/mimalloc3, which", "sweep/mimalloc3"));
        assert!(!mentions("cfrac: release at the end", "lea"));
        assert!(!mentions("cfrac:gc under lea", "cfrac"), "a variant is another program");
    }
}
