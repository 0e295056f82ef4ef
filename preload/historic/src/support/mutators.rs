//! A collector and the program under it, each as the other sees it, and what a collection comes to.

use core::ffi::c_int;
use core::ops::Range;

use heaptoll_roots::Root;
use heaptoll_runtime::{AbandonCause, Heap};

/// What is done while the program is stopped.
pub trait Visitor {
    /// Words that may be pointers.
    fn root(&mut self, root: Root);

    /// Those were all of them.
    fn finish(&mut self);
}

/// The program, as a collector sees it: threads that can be stopped, with their roots.
pub trait Mutators: Sync {
    /// At process start.
    fn start(&'static self);

    /// Stops all other threads, shows all roots outside of `left_out`, and resumes the threads.
    ///
    /// # Errors
    /// Not all could be stopped, or not all roots be read: [`Visitor::finish`] was not called.
    fn with_world_stopped(
        &self,
        left_out: &[Range<usize>],
        visitor: &mut dyn Visitor,
    ) -> Result<(), AbandonCause>;

    /// In the child of a fork.
    fn after_fork_in_child(&self);
}

/// A heap that collects.
pub trait Collector: Heap {
    /// One that collects what this program cannot reach.
    fn of(mutators: &'static dyn Mutators) -> Self;

    /// Its size, bytes.
    fn bytes(&self) -> usize {
        self.region().end() - self.region().start()
    }

    /// The number of the last collection that began, aborted or not.
    fn collections(&self) -> u64;

    /// Collects because enough was allocated.
    ///
    /// # Errors
    /// [`Aborted`], when the program could not be stopped: nothing was reclaimed.
    fn collect_by_itself(&mut self) -> Result<CollectionOutcome, Aborted>;
}

/// A collection was aborted; the heap is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aborted;

/// The figures of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectionOutcome {
    /// Bytes in objects that were marked.
    pub live_bytes: usize,
    /// Bytes in objects that were in use before and are not any more.
    pub reclaimed_bytes: usize,
}

/// A positive `errno` value for an aborted collection, and 0 for a finished one.
pub fn status(collected: Result<CollectionOutcome, Aborted>) -> c_int {
    if collected.is_ok() { 0 } else { libc::EAGAIN }
}
