//! How far a study is: a bar on a terminal; elsewhere a line a step, and one every ten seconds.

use std::time::{Duration, Instant};

use heaptoll_studies::paper::budget::Planned;
use heaptoll_studies::paper::definition::Step;
use heaptoll_units::took;
use indicatif::ProgressBar;

use super::command_name::command_name;
use crate::lines::Lines;
use crate::{progress_bar, terminal};

/// The bar; hidden where standard error is no terminal.
pub struct Progress {
    bar: ProgressBar,
    _lines: Lines,
    now: String,
    left_s: f64,
    step_s: f64,
    since: Instant,
}

impl Progress {
    /// Before the first step.
    pub fn new() -> Progress {
        let bar = progress_bar::of_steps(0);
        Progress {
            _lines: Lines::of(&bar),
            bar,
            now: String::new(),
            left_s: 0.0,
            step_s: 0.0,
            since: Instant::now(),
        }
    }

    /// A step begins, of so many that there are; `left_s` is the guess for it and all after it.
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
        self.now = format!("{}: {} {programs}{managers}", planned.step, command_name(step.kind));
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        if self.bar.is_hidden() {
            let text = format!("step {} of {all}: {}, about {}", done + 1, self.now, took(planned.seconds));
            terminal::note(&text);
        }
        self.refresh();
    }

    /// Updates the time left.
    pub fn refresh(&self) {
        let gone = self.since.elapsed().as_secs_f64();
        // A step that takes longer than it was guessed does not shorten the others.
        let left = self.left_s - gone.min(self.step_s);
        let left = indicatif::HumanDuration(Duration::from_secs_f64(left.clamp(0.0, 1e7).ceil()));
        self.bar.set_message(format!("{left} left, now {}", self.now));
    }

    /// Takes the bar off the terminal.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints above the bar.
    pub fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}
