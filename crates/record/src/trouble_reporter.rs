//! Troubles, as the user sees them.

use std::collections::HashSet;

use crate::recorded::Progress;

/// Reports each trouble to the user once: a full disk shows while a trace is written and again when it ends.
pub struct TroubleReporter<'a> {
    pub progress: &'a mut dyn Progress,
    reported: HashSet<String>,
}

impl<'a> TroubleReporter<'a> {
    pub fn new(progress: &'a mut dyn Progress) -> TroubleReporter<'a> {
        TroubleReporter { progress, reported: HashSet::new() }
    }

    pub fn trouble(&mut self, message: &str) {
        if self.reported.insert(message.to_string()) {
            self.progress.trouble(message);
        }
    }
}
