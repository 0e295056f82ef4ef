//! Messages of an experiment on standard error: notes, warnings, and a bar that shows how far it is (a line every ten
//! seconds where that is no terminal).

use std::sync::{Mutex, PoisonError};

use heaptoll_command::context::{Messages, Progress};
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_report::document::Document;
use heaptoll_report::experiment::program_in_brief;
use heaptoll_report::format::printable;
use heaptoll_report::terminal::render_document;
use indicatif::{ProgressBar, ProgressStyle};

use crate::lines::Lines;
use crate::{progress_bar, terminal};

/// The figures of an experiment with more rows than these are not shown while they are measured: comparing them takes its time.
const MOST_ROWS: usize = 5000;

/// The terminal. A message goes above the bar that is shown.
#[derive(Default)]
pub struct TerminalMessages {
    shown: Mutex<Option<ProgressBar>>,
}

impl TerminalMessages {
    fn bar(&self) -> Option<ProgressBar> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        shown.filter(|bar| !bar.is_finished())
    }

    fn above_the_bar(&self, print: impl FnOnce()) {
        match self.bar() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Messages for TerminalMessages {
    fn note(&self, text: &str) {
        self.above_the_bar(|| terminal::note(text));
    }

    fn warning(&self, text: &str) {
        self.above_the_bar(|| terminal::warning(text));
    }

    fn error(&self, text: &str) {
        self.above_the_bar(|| terminal::error(text));
    }

    fn figures(&self, experiment: &Experiment, program: &str, so_far: bool) {
        let bar = self.bar().filter(|bar| !bar.is_hidden());
        let is_compared = |row: &Observation| row.program == program && row.phase == Phase::Timed;
        let rows = &experiment.observations;
        if so_far && (bar.is_none() || rows.len() > MOST_ROWS || !rows.iter().any(is_compared)) {
            return;
        }
        let text = figures(experiment, program, so_far);
        if let Some(bar) = bar {
            bar.set_prefix(if so_far { text.clone() } else { String::new() });
        }
        if !so_far {
            // A standard output that cannot be written to is reported at the end.
            self.above_the_bar(|| drop(terminal::print(&format!("{text}\n"))));
        }
    }

    fn progress(&self, steps: Option<u64>) -> Box<dyn Progress> {
        let bar = match steps {
            Some(steps) => progress_bar::of_steps(steps),
            None => spinner(),
        };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Box::new(Shown { _lines: Lines::of(&bar), bar })
    }
}

/// The table of one program, as it is by now.
fn figures(experiment: &Experiment, program: &str, so_far: bool) -> String {
    // Rows are judged on a copy: what an output is judged by may still change.
    let mut own = experiment.clone();
    own.programs.retain(|one| one.name == program);
    own.observations.retain(|row| row.program == program);
    judge_outputs(&mut own);
    let comparison = compare(&own);
    let mut sections: Vec<_> =
        comparison.tables.iter().map(|table| program_in_brief(&own, &comparison, table)).collect();
    if so_far {
        sections.iter_mut().for_each(|section| section.title += ", so far");
    }
    render_document(&Document { sections, ..Document::default() }, &terminal::style())
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    match ProgressStyle::with_template("{spinner} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar, which disappears with this.
struct Shown {
    // Dropped first: no line is written of a bar that is gone.
    _lines: Lines,
    bar: ProgressBar,
}

impl Progress for Shown {
    fn set_text(&self, text: &str) {
        self.bar.set_message(printable(text));
    }

    fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }

    fn set_steps(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    fn begins(&self, text: &str) {
        if self.bar.is_hidden() {
            terminal::note(text);
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_gone_with_its_progress() {
        let messages = TerminalMessages::default();
        let progress = messages.progress(Some(3));
        progress.set_text("now a under b");
        progress.advance(1);
        let bar = messages.shown.lock().expect("nothing panicked").clone().expect("a bar");
        assert_eq!((bar.position(), bar.is_finished()), (1, false));
        drop(progress);
        assert!(bar.is_finished());
    }
}
