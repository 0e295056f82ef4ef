//! The trials that every [`heaptoll_runtime::Heap`] must pass, whatever its algorithm: random sequences of operations
//! against a model that knows what should be live and what it should contain.
//!
//! A manager's test is one line, [`trial!`]. A sequence that once failed is kept there as a test of its
//! own, by [`replay`]. [`collector`] has the trials of collectors.

pub mod collector;
mod model;
mod operation;

pub use model::{Model, replay};
pub use operation::{Operation, sequence};

/// The tests of a heap type with a `new()`. `reuses: false` for a manager that never uses freed memory again.
macro_rules! trial {
    ($heap:ty, reuses: $reuses:expr) => {
        #[test]
        fn random_sequences_keep_contents_and_invariants() {
            $crate::kit::random_sequences(file!(), 0, || <$heap>::new());
        }

        #[test]
        fn random_sequences_survive_a_system_that_gives_no_memory() {
            for every in [1, 2, 3, 7] {
                $crate::kit::random_sequences(file!(), every, || <$heap>::new());
            }
        }

        #[test]
        fn requests_that_cannot_be_had_leave_the_heap_sound() {
            $crate::kit::impossible_requests(<$heap>::new());
        }

        #[test]
        fn freed_memory_is_used_again() {
            assert_eq!($crate::kit::bounded_under_churn(<$heap>::new()), $reuses);
        }
    };
}

pub(crate) use trial;

use heaptoll_runtime::Heap;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

/// Runs random sequences on fresh heaps, every `fail_every`-th request for memory failing (0: none). A failing sequence
/// is made minimal, printed, and stored next to `file`.
pub fn random_sequences<H: Heap>(file: &'static str, fail_every: u64, fresh: fn() -> H) {
    let config = Config {
        cases: 96,
        source_file: Some(file),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&sequence(400), |operations| {
        let mut heap = fresh();
        heap.region_mut().fail_every(fail_every);
        replay(heap, fail_every != 0, &operations);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Requests more than there is, in every way, between blocks that must stay as they are.
pub fn impossible_requests<H: Heap>(heap: H) {
    let mut model = Model::new(heap, true);
    let largest = isize::MAX as usize;
    model.apply(Operation::Allocate(100));
    for bytes in [largest, largest - 4096, 1 << 47] {
        assert!(model.heap().allocate(bytes).is_none());
        assert!(model.heap().allocate_aligned(4096, bytes - 4096).is_none());
        model.apply(Operation::Resize(0, bytes));
        model.verify();
    }
    model.apply(Operation::Allocate(100));
    model.verify();
    assert_eq!(model.live(), 2);
    // Sizes whose upper bits may be taken for those of a header, with a small block free to be taken for a large one.
    for bytes in (47..63).map(|bits| (1 << bits) + 100) {
        model.apply(Operation::Free(0));
        assert!(model.heap().allocate(bytes).is_none(), "{bytes} bytes");
        assert!(model.heap().allocate_aligned(bytes & !127, 100).is_none(), "aligned to {}", bytes & !127);
        model.apply(Operation::Allocate(100));
        model.verify();
    }
}

/// Whether the heap stays at a size while blocks of ever the same sizes come and go.
pub fn bounded_under_churn<H: Heap>(heap: H) -> bool {
    let mut model = Model::new(heap, false);
    let round = |model: &mut Model<H>| {
        for size in [8, 24, 100, 700, 5000, 40_000] {
            (0..8).for_each(|_| model.apply(Operation::Allocate(size)));
        }
        while model.live() > 0 {
            model.apply(Operation::Free(model.live() / 2));
        }
    };
    (0..4).for_each(|_| round(&mut model));
    let before = model.heap().region().mapped_bytes();
    (0..60).for_each(|_| round(&mut model));
    model.verify();
    model.heap().region().mapped_bytes() == before
}
