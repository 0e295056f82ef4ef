//! What every experiment needs from who starts it: the installation, a way to end it early, and a place for messages.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;

use crate::own_input::OwnInput;

/// The surroundings of an experiment.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Where heaptoll's parts are installed.
    pub places: &'a Places,
    /// Set when the experiment shall end early; what was measured until then is kept.
    pub interrupt: &'a Interrupt,
    /// What programs read where no file is named for their standard input.
    pub own_input: &'a OwnInput,
    /// Where messages and progress go.
    pub messages: &'a dyn Messages,
}

/// Takes what an experiment reports while it runs.
pub trait Messages: Sync {
    /// A remark.
    fn note(&self, text: &str);

    /// Something that may make figures wrong or incomplete.
    fn warning(&self, text: &str);

    /// Something that failed, where the experiment goes on.
    fn error(&self, text: &str);

    /// The figures of a program that is measured now: those so far, or, where it has all its runs, the last ones.
    fn figures(&self, _experiment: &Experiment, _program: &str, _so_far: bool) {}

    /// Progress over these steps; over an unknown number where there is none. It disappears when it is dropped.
    fn progress(&self, steps: Option<u64>) -> Box<dyn Progress>;
}

/// Progress of one part of an experiment.
pub trait Progress {
    /// What is done now, in a line.
    fn set_text(&self, text: &str);

    /// This many more steps are done.
    fn advance(&self, steps: u64);

    /// `done` steps of `of` are done, where their number changes on the way.
    fn set_steps(&self, _done: u64, _of: u64) {}

    /// A part begins that takes its time: a line, where no bar is shown.
    fn begins(&self, _text: &str) {}
}

/// Shows nothing: for tests, and for programs that look at figures only.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Messages for Silent {
    fn note(&self, _: &str) {}

    fn warning(&self, _: &str) {}

    fn error(&self, _: &str) {}

    fn progress(&self, _: Option<u64>) -> Box<dyn Progress> {
        Box::new(Silent)
    }
}

impl Progress for Silent {
    fn set_text(&self, _: &str) {}

    fn advance(&self, _: u64) {}
}
