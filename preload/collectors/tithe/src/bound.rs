//! Mode `guard` within TITHE_WAITING: how many freed blocks may wait, and what is done where words lead to more of them.

use heaptoll_runtime::Message;

use crate::collector::{Collector, Outgrown};
use crate::guard_settings::AtBound;
use crate::heap::Heap;
use crate::mode::Mode;
use crate::policy::LEAST;
use crate::progress::Guarded;

impl Heap {
    /// The budget, in mode `guard` within the bound of freed blocks; notes what is to be reported where that is reached.
    pub(crate) fn within_bound(&self, collector: &mut Collector, budget: usize, found: &Guarded) -> usize {
        let Some(bound) = collector.guard.waiting.filter(|_| self.is_mode(Mode::Guard)) else {
            return budget;
        };
        let is_reached = found.bounded >= bound;
        let reported = match collector.guard.at_bound {
            AtBound::Collect => 0,
            AtBound::Warn if is_reached => found.kept,
            AtBound::Warn => 0,
            AtBound::Release => found.released,
        };
        if reported > 0 && collector.outgrown == Outgrown::No {
            collector.outgrown = Outgrown::Unreported(reported);
        }
        if is_reached && collector.guard.at_bound == AtBound::Warn {
            return budget;
        }
        // Where all the bound is used up: a pass that reads for each few frees what the last one read would take all time.
        budget.min(bound.saturating_sub(found.bounded).max(LEAST.max(found.bounded / 16)))
    }

    /// Reports, once, that freed blocks have reached their bound. The program runs.
    pub(crate) fn report_outgrown(&self, collector: &mut Collector) {
        let Outgrown::Unreported(bytes) = collector.outgrown else { return };
        collector.outgrown = Outgrown::Reported;
        let line = Message::new().text("tithe: ").number(bytes as u64);
        let line = match collector.guard.at_bound {
            AtBound::Release => line.text(
                " bytes of freed blocks to which words lead became available, as more waited than TITHE_WAITING allows",
            ),
            _ => line.text(
                " bytes of freed blocks wait, since words lead to them, and TITHE_WAITING is reached: allow more, or \
                 clear the pointers to what is freed",
            ),
        };
        line.write();
    }
}
