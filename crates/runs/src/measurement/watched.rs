//! The progress bar of an experiment, which cancels the rest when a row shows that it would be useless.

use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::Progress;

use super::progress::Bar;
use heaptoll_command::context::Messages;

/// Why the rows after this one would be useless, if they would.
pub type StopReason<'a> = &'a dyn Fn(&Observation) -> Option<String>;

/// A bar, and what cancels the rest.
pub struct Watched<'a> {
    /// The bar.
    pub bar: Bar,
    /// What shows it, where rows are checked.
    pub stop_reason: Option<StopReason<'a>>,
    /// What cancels the rest.
    pub interrupt: &'a Interrupt,
    /// Why the rest was cancelled.
    pub why: Option<String>,
    /// What shows figures so far, where programs are measured one by one.
    pub figures: Option<&'a dyn Messages>,
}

impl Progress for Watched<'_> {
    fn begins(&mut self, cell: &Cell, stack: &StackInfo) {
        self.bar.begins(cell, stack);
    }

    fn ended(&mut self, cell: &Cell, row: Option<&Observation>) {
        self.bar.ended(cell, row);
        if let (Some(row), Some(stop_reason), None) = (row, self.stop_reason, &self.why) {
            self.why = stop_reason(row);
            if self.why.is_some() {
                self.interrupt.set();
            }
        }
    }

    fn kept(&mut self, experiment: &Experiment, program: &str) {
        if let Some(messages) = self.figures {
            messages.figures(experiment, program, true);
        }
    }
}
