//! What sets the versions of the collector apart.

use core::ffi::c_int;
use core::ops::Range;

use heaptoll_roots::Root;

use crate::{Boehm, Classes};

/// A version of the collector.
pub trait Version: Sized + Send + 'static {
    /// The manager's name.
    const NAME: &'static str;

    /// Whether a chunk's header lies in the chunk itself, or in a table outside the heap.
    const HEADER_INSIDE: bool;

    /// Bytes added to each request, so that a pointer after its end is still one into it.
    const SLOP: usize;

    /// The size classes.
    const CLASSES: &'static Classes;

    /// Whether free chunks that are known to be zero are not cleared again before use.
    const KNOWS_CLEAN: bool;

    /// Whether chunks that false pointers in the program point into are avoided.
    const BLACK_LISTS: bool;

    /// Whether all is swept at once, in the collection, or each chunk when its objects are needed.
    const EAGER: bool;

    /// Puts at least one object on the empty list of `class`: by sweeping, with a new chunk, after a collection or by
    /// growth, as the version's policy has it. `None` when the system gives no more.
    fn refill(heap: &mut Boehm<Self>, class: usize) -> Option<()>;

    /// Takes a run of chunks of `bytes` for a large object, after a collection or growth if need be.
    fn run(heap: &mut Boehm<Self>, bytes: usize) -> Option<usize>;

    /// The version's reaction to a collection that was not requested, which reclaimed `reclaimed` bytes.
    fn collected(heap: &mut Boehm<Self>, reclaimed: usize) {
        let _ = (heap, reclaimed);
    }
}

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
    /// Not all could be stopped, or not all roots be read: [`Visitor::finish`] was not called. The cause was reported,
    /// if there is one to report.
    fn with_world_stopped(&self, left_out: &[Range<usize>], visitor: &mut dyn Visitor)
    -> Result<(), Aborted>;

    /// In the child of a fork.
    fn after_fork_in_child(&self);
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
