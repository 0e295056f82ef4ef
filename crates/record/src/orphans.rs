//! Processes that outlive the first one: whether any may still record something, which of them no longer have the rings,
//! and when the user is to know that the recording waits for them.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::proc;
use crate::uninstrumented;

/// They are polled this often, and reported after this time.
const POLL: Duration = Duration::from_millis(100);
const REPORT_AFTER: Duration = Duration::from_secs(2);
const REPORT_SOON: Duration = Duration::from_millis(500);

/// The state of these polls.
#[derive(Default)]
pub struct Orphans {
    next_poll: Option<Instant>,
    pids: Vec<i32>,
    reported: bool,
    /// Images whose processes did not have the rings at the last poll.
    detached: HashSet<u32>,
    /// When they are polled next.
    next_detached: Option<Instant>,
}

impl Orphans {
    /// Whether a process that is not recorded may still begin to record: it has inherited the name of the rings.
    pub fn remain(&mut self, rings: &Path) -> bool {
        let now = Instant::now();
        if self.next_poll.is_none_or(|next| now >= next) {
            self.next_poll = Some(now + POLL);
            self.pids = uninstrumented::orphans(rings);
        }
        !self.pids.is_empty()
    }

    /// Images of recorded processes (process, image) that do not have the rings. In the middle of an exec a process has
    /// none yet: it must be seen twice.
    pub fn poll_detached(&mut self, recorded: impl Iterator<Item = (i32, u32)>, rings: &Path) -> Vec<u32> {
        let now = Instant::now();
        if self.next_detached.is_some_and(|next| now < next) {
            return Vec::new();
        }
        self.next_detached = Some(now + POLL);
        let without = |pid: i32| proc::maps_file(pid, rings) == Some(false);
        let detached: HashSet<u32> =
            recorded.filter(|(pid, _)| without(*pid)).map(|(_, image)| image).collect();
        let before = std::mem::replace(&mut self.detached, detached);
        self.detached.intersection(&before).copied().collect()
    }

    /// Once, some time after the end of the first process: the processes that the recording waits for, those that are
    /// recorded included. After an interrupt the user expects an answer soon.
    pub fn report(
        &mut self,
        recorded: impl Iterator<Item = i32>,
        since_end: Duration,
        interrupted: bool,
    ) -> Option<Vec<i32>> {
        if self.reported || since_end < if interrupted { REPORT_SOON } else { REPORT_AFTER } {
            return None;
        }
        let mut pids: Vec<i32> = recorded.chain(self.pids.iter().copied()).collect();
        pids.sort_unstable();
        pids.dedup();
        // There may be none: finishing traces takes its time, too.
        self.reported = !pids.is_empty();
        self.reported.then_some(pids)
    }
}
