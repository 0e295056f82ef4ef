//! A collection that is abandoned, since a thread does not stop or the system does not give what is needed: the heap grows
//! instead.

use heaptoll_runtime::now_ns;

use crate::collector::Collector;
use crate::heap::Heap;
use crate::log::{self, Abandoned, Cause};
use crate::progress::{NotCollected, Progress};

impl Heap {
    /// Abandons a collection, and lets the heap grow.
    ///
    /// # Errors
    /// Always: there was no collection.
    pub(crate) fn abandon(
        &self,
        collector: &mut Collector,
        progress: &Progress,
        cause: Cause,
    ) -> Result<(), NotCollected> {
        collector.statistics.abandoned += 1;
        let budget = match cause.passes {
            true => collector.policy.postponed(),
            false => collector.policy.abandoned(),
        };
        self.set_budget(collector, budget, self.counted());
        self.reporter.abandoned(cause.cause);
        if let Some(sink) = &collector.log {
            log::write_abandoned(
                sink,
                &Abandoned {
                    number: collector.statistics.abandoned,
                    reason: progress.reason,
                    cause,
                    heap_before: progress.before,
                    waited_ns: now_ns().saturating_sub(progress.times.started),
                },
            );
        }
        Err(NotCollected::Abandoned)
    }
}
