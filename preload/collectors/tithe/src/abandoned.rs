//! A collection that is abandoned, since a thread does not stop or the system does not give what is needed: the heap grows
//! instead.

use core::sync::atomic::Ordering;

use heaptoll_roots::{RootsError, StopError, UnstoppedThread};
use heaptoll_runtime::{Message, now_ns};

use crate::collector::Collector;
use crate::heap::Heap;
use crate::log::{self, Abandoned, Cause};
use crate::progress::{NotCollected, Progress};

impl Heap {
    /// Abandons a collection: reports the first, and lets the heap grow.
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
        let budget = match cause {
            // It took no time, and the next may succeed.
            Cause::Descriptors => collector.policy.postponed(),
            _ => collector.policy.abandoned(),
        };
        self.set_budget(collector, budget, self.allocated_since_gc.load(Ordering::Relaxed));
        if !core::mem::replace(&mut collector.warned, true) {
            let line = Message::new().text("tithe: ");
            match &cause {
                Cause::Thread { tid, name, .. } => {
                    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    let name = core::str::from_utf8(&name[..length]).unwrap_or("?");
                    let line = line.text("thread ").number(*tid as u64).text(" (").text(name);
                    line.text(") did not stop for a collection in time (it may block all signals); the heap grows instead")
                }
                Cause::Memory => line.text("no memory for a collection; the heap grows instead"),
                Cause::Vfork => line.text("no collection in a child of vfork; the heap grows instead"),
                Cause::Descriptors => line.text(
                    "no file descriptor is free to read /proc/self with, so there is no collection until there is one; \
                     the heap grows instead",
                ),
                Cause::Threads | Cause::Roots => {
                    line.text("/proc/self is not readable, so there is no collection; the heap grows instead")
                }
            }
            .write();
        }
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

/// Why roots that were not all read end the collection.
pub fn cause_of_roots(error: RootsError) -> Cause {
    match error {
        RootsError::NoDescriptor => Cause::Descriptors,
        RootsError::NoMemory => Cause::Memory,
        RootsError::Maps => Cause::Roots,
    }
}

/// Why a stop that failed ends the collection.
pub fn cause(error: &StopError) -> Cause {
    match *error {
        StopError::Thread(UnstoppedThread { tid, name, state }) => {
            Cause::Thread { tid, name, state: u8::try_from(state).unwrap_or(b'?') }
        }
        StopError::NoMemory => Cause::Memory,
        StopError::NotOurProcess => Cause::Vfork,
        StopError::NoDescriptor => Cause::Descriptors,
        StopError::ProcUnreadable | StopError::NoSignal => Cause::Threads,
    }
}
