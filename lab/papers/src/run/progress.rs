//! How far a study is: which step of how many, what it runs, and the time that is left.

use std::time::{Duration, Instant};

use crate::budget::Planned;
use crate::definition::Step;
use heaptoll_command::context::{Messages, Progress as Bar};

use heaptoll_units::took;

/// The bar and its text.
pub struct Progress {
    bar: Box<dyn Bar>,
    now: String,
    left_s: f64,
    step_s: f64,
    since: Instant,
}

impl Progress {
    /// Before the first step.
    pub fn new(messages: &dyn Messages) -> Progress {
        let bar = messages.progress(Some(0));
        Progress { bar, now: String::new(), left_s: 0.0, step_s: 0.0, since: Instant::now() }
    }

    /// A step begins, of this number; `left_s` is the guess for it and all after it.
    pub fn begins(&mut self, done: usize, all: usize, planned: &Planned, step: &Step, left_s: f64) {
        self.since = Instant::now();
        (self.left_s, self.step_s) = (left_s, planned.seconds);
        let managers = match planned.managers {
            0 => String::new(),
            1 => " under 1 manager".into(),
            many => format!(" under {many} managers"),
        };
        let programs = match planned.programs {
            1 => "1 program".into(),
            many => format!("{many} programs"),
        };
        self.now = format!("{}: {} {programs}{managers}", planned.step, step.kind.command().name);
        self.bar.set_steps(done as u64, all as u64);
        let rest = if done + 1 < all {
            format!(", and {} for all that is left", took(left_s))
        } else {
            String::new()
        };
        self.bar.begins(&format!(
            "step {} of {all}: {}, about {}{rest}",
            done + 1,
            self.now,
            took(planned.seconds)
        ));
        self.refresh();
    }

    /// Updates the time left.
    pub fn refresh(&self) {
        let gone = self.since.elapsed().as_secs_f64();
        // A step that takes longer than it was guessed does not shorten the others.
        let left = self.left_s - gone.min(self.step_s);
        let left = indicatif::HumanDuration(Duration::from_secs_f64(left.clamp(0.0, 1e7).ceil()));
        self.bar.set_text(&format!("{left} left, now {}", self.now));
    }
}
