//! Messages of an experiment on standard error: notes, warnings, and a bar that shows how far it is (a line every ten
//! seconds where that is no terminal).

use std::sync::{Mutex, PoisonError};

use heaptoll_experiments::context::{Messages, Progress};
use heaptoll_report::format::printable;
use indicatif::{ProgressBar, ProgressStyle};

use crate::lines::Lines;
use crate::{progress_bar, terminal};

/// The terminal. A message goes above the bar that is shown.
#[derive(Default)]
pub struct TerminalMessages {
    shown: Mutex<Option<ProgressBar>>,
}

impl TerminalMessages {
    fn above_the_bar(&self, print: impl FnOnce()) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match shown.filter(|bar| !bar.is_finished()) {
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

    fn progress(&self, steps: Option<u64>) -> Box<dyn Progress> {
        let bar = match steps {
            Some(steps) => progress_bar::of_steps(steps),
            None => spinner(),
        };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Box::new(Shown { _lines: Lines::of(&bar), bar })
    }
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
