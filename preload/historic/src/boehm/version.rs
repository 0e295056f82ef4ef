//! What sets the versions of the collector apart.

use crate::boehm::{Boehm, Classes};

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
