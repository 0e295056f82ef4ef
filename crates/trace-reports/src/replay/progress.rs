//! Progress of a replay, as messages.

use std::time::Duration;

use heaptoll_replay::study::Progress as ReportProgress;

use heaptoll_command::context::{Messages, Progress};
use heaptoll_runs::preparation::estimate::Estimate;

/// Shows how many runs are made, and how long the others will take.
pub struct ReplayProgress<'a> {
    messages: &'a dyn Messages,
    shown: Box<dyn Progress>,
    /// Runs made, and of how many.
    done: (usize, usize),
    text: String,
}

impl<'a> ReplayProgress<'a> {
    /// Nothing is known of the runs yet.
    pub fn new(messages: &'a dyn Messages) -> ReplayProgress<'a> {
        ReplayProgress { messages, shown: messages.progress(None), done: (0, 0), text: String::new() }
    }

    fn announce(&self, estimate: &Estimate) {
        if let Some(sentence) = estimate.sentence() {
            self.messages.note(&sentence);
        }
    }
}

impl ReportProgress for ReplayProgress<'_> {
    fn message(&mut self, what: &str) {
        what.clone_into(&mut self.text);
        self.shown.set_text(what);
    }

    fn begins(&mut self, runs: usize, calls: u64, one: Duration) {
        self.announce(&Estimate {
            what: format!("{runs} runs to make, of {calls} calls each"),
            seconds: runs as f64 * one.as_secs_f64(),
            at_least: true,
            provided: "a run takes as long as one under a manager that does nothing".into(),
        });
    }

    fn first_round(&mut self, took: Duration, done: usize, left: usize) {
        self.announce(&Estimate {
            what: format!("{left} more runs to make"),
            seconds: left as f64 * took.as_secs_f64() / done.max(1) as f64,
            at_least: false,
            provided: "they take as long as in the first round".into(),
        });
    }

    fn ran(&mut self, done: usize, of: usize) {
        if of != self.done.1 {
            self.shown = self.messages.progress(Some(of as u64));
            self.shown.set_text(&self.text);
            self.done = (0, of);
        }
        self.shown.advance(done.saturating_sub(self.done.0) as u64);
        self.done.0 = done;
    }
}
