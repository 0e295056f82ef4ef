//! Incremental collections: what they keep and reclaim while the program changes the heap between their increments. A full
//! marking follows each of them, and must find no more; on kernels that record no writes all collections are whole, and
//! hold too.

mod unread;

use std::vec::Vec;

use super::mutator::{Contents, run};
use super::*;

/// A pause of so short a time that each increment marks as little as it can.
fn settings(mode: Mode) -> Settings {
    Settings {
        mode,
        min_headroom: 1 << 40,
        poison: true,
        pause_ns: Some(1),
        check_young: true,
        ..Settings::new()
    }
}

impl HeapFixture {
    fn incremental(mode: Mode) -> HeapFixture {
        HeapFixture::with(&settings(mode), 1)
    }

    /// An increment, or a whole collection where writes are not recorded; returns whether it has ended an incremental one.
    fn collect_increment(&self) -> bool {
        self.heap.budget.store(isize::MIN, Ordering::Relaxed);
        let before = self.heap.collector.lock().statistics.collections;
        assert_eq!(self.heap.collect(Reason::Budget), Ok(()));
        // No request makes the next one.
        self.heap.budget.store(isize::MAX, Ordering::Relaxed);
        let collector = self.heap.collector.lock();
        collector.statistics.collections > before && collector.increments.count > 0
    }

    fn is_collecting(&self) -> bool {
        self.heap.collector.lock().increments.is_active()
    }

    /// Whether this kernel records writes.
    fn has_increments(&self) -> bool {
        self.heap.collector.lock().generations.tracker.is_available()
    }

    /// Ends the collection that has begun, or the next one, with a call between two increments; returns their number.
    fn collect_with(&self, mut between: impl FnMut()) -> usize {
        let mut increments = 1;
        while !self.collect_increment() && self.has_increments() {
            increments += 1;
            assert!(increments < 10_000, "a collection ends");
            between();
        }
        increments
    }

    /// As [`HeapFixture::collect_increment`], where every other collection is full.
    fn collect_full_or_young(&self) -> bool {
        {
            let mut collector = self.heap.collector.lock();
            if !collector.increments.is_active() && collector.statistics.collections.is_multiple_of(2) {
                collector.generations.begin();
            }
        }
        self.collect_increment()
    }

    fn collect_to_the_end(&self) -> usize {
        self.collect_with(|| {})
    }
}

/// Blocks in a list, the first of which is returned.
fn list(fixture: &HeapFixture, count: usize, bytes: usize) -> Vec<usize> {
    let blocks: Vec<usize> = (0..count).map(|_| fixture.allocate_clear(bytes, false)).collect();
    blocks.windows(2).for_each(|pair| set_word(pair[0], pair[1]));
    blocks
}

#[test]
fn a_collection_in_increments_keeps_what_is_reachable_and_reclaims_the_rest() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let fixture = HeapFixture::incremental(mode);
        let (kept, dead) = (list(&fixture, 4000, 200), list(&fixture, 4000, 200));
        let roots = Box::new([kept[0]]);
        fixture.add_roots(&roots[..]);
        let increments = fixture.collect_to_the_end();
        assert!(increments > 4 || !fixture.has_increments(), "{increments} increments");
        fixture.heap.sweep_all();
        assert!(kept.iter().all(|&block| fixture.is_taken(block)));
        assert!(!dead.iter().any(|&block| fixture.is_taken(block)));
        fixture.audit();
    }
}

/// The program moves the only address of a block from where it was not read yet to where it was.
#[test]
fn an_address_that_moves_to_where_was_read_is_found() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let list = list(&fixture, 4000, 200);
    let moved = fixture.allocate_clear(48, false);
    set_word(list[3999] + 8, moved);
    let roots = Box::new([list[0]]);
    fixture.add_roots(&roots[..]);
    fixture.collect_with(|| {
        let marked = fixture.heap.collector.lock().increments.done();
        if marked > 100_000 && word(list[3999] + 8) == moved {
            set_word(list[0] + 8, moved);
            set_word(list[3999] + 8, 0);
        }
    });
    assert!(word(list[0] + 8) == moved || !fixture.has_increments());
    fixture.heap.sweep_all();
    assert!(fixture.is_taken(moved));
    fixture.audit();
}

/// A word that was read points to where no block is, and gets one before the collection ends.
#[test]
fn a_block_that_is_allocated_where_a_word_that_was_read_points_is_kept() {
    let fixture = HeapFixture::incremental(Mode::Hybrid);
    let hole = fixture.allocate_clear(300_000, false);
    let list = list(&fixture, 4000, 200);
    assert_eq!(fixture.free(hole), Ok(()));
    let place = hole + 100;
    set_word(list[0] + 8, place);
    let roots = Box::new([list[0]]);
    fixture.add_roots(&roots[..]);
    let mut there = None;
    fixture.collect_with(|| {
        let marked = fixture.heap.collector.lock().increments.done();
        if marked > 100_000 && there.is_none() {
            let mut blocks = (0..2000).map(|_| fixture.allocate_clear(1000, false));
            there = blocks.find(|&block| (block..block + 1000).contains(&place));
            assert!(there.is_some(), "no block was allocated where a large one was freed");
        }
    });
    assert!(there.is_some() || !fixture.has_increments());
    fixture.heap.sweep_all();
    assert!(there.is_none_or(|block| fixture.is_taken(block)));
    fixture.audit();
}

#[test]
fn blocks_that_are_allocated_and_freed_between_increments_are_counted() {
    let fixture = HeapFixture::incremental(Mode::Hybrid);
    let list = list(&fixture, 4000, 200);
    let roots = Box::new([list[0], 0]);
    fixture.add_roots(&roots[..]);
    let mut at = 0;
    fixture.collect_with(|| {
        for _ in 0..20 {
            let block = fixture.allocate_clear(200, false);
            set_word(block, word(list[at]));
            set_word(list[at], block);
            at += 1;
            assert_eq!(fixture.free(fixture.allocate(200)), Ok(()));
            assert_eq!(fixture.free(fixture.allocate(300_000)), Ok(()));
        }
        fixture.check();
    });
    fixture.heap.sweep_all();
    let mut block = roots[0];
    let mut length = 0;
    while block != 0 {
        assert!(fixture.is_taken(block));
        (block, length) = (word(block), length + 1);
    }
    assert_eq!(length, 4000 + at);
    fixture.audit();
}

/// The heap grows while writes to it begin to be recorded: what is new is recorded too.
#[test]
fn a_heap_that_grows_while_a_collection_begins_is_recorded_to_its_end() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let mut roots = Box::new([list(&fixture, 20_000, 200)[0], 0]);
    fixture.add_roots(&roots[..]);
    fixture.collect_increment();
    assert_eq!(fixture.is_collecting(), fixture.has_increments());
    let units = fixture.heap.reservation.units();
    let more = list(&fixture, 60_000, 200);
    roots[1] = more[0];
    assert!(fixture.heap.reservation.units() > units);
    fixture.collect_to_the_end();
    assert_eq!(fixture.heap.collector.lock().statistics.collections, 1, "no whole one took its place");
    fixture.heap.sweep_all();
    assert!(more.iter().all(|&block| fixture.is_taken(block)));
    fixture.audit();
}

/// A stack too small for a list of blocks that point to many: what had no space is found in the end.
#[test]
fn a_mark_stack_that_overflows_between_increments_loses_nothing() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let holders: Vec<usize> = (0..200).map(|_| fixture.allocate_clear(2000, false)).collect();
    let mut blocks = Vec::new();
    for holder in &holders {
        for at in 0..200 {
            let block = fixture.allocate_clear(100, false);
            set_word(holder + at * 8, block);
            blocks.push(block);
        }
    }
    fixture.add_roots(&holders);
    fixture.heap.collector.lock().stack.limit(64);
    fixture.collect_to_the_end();
    fixture.heap.sweep_all();
    assert!(blocks.iter().chain(&holders).all(|&block| fixture.is_taken(block)));
    fixture.audit();
}

/// A program that has what holds a block found between increments would keep every collection from ending.
#[test]
fn a_collection_that_was_not_continued_is_followed_by_a_whole_one() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let roots = Box::new([list(&fixture, 4000, 200)[0]]);
    fixture.add_roots(&roots[..]);
    for _ in 0..4 {
        fixture.collect_increment();
    }
    assert_eq!(fixture.is_collecting(), fixture.has_increments());
    {
        let mut collector = fixture.heap.collector.lock();
        fixture.heap.forget_increments(&mut collector);
    }
    assert!(!fixture.is_collecting());
    fixture.collect_increment();
    assert!(!fixture.is_collecting(), "it was whole");
    assert!(fixture.heap.collector.lock().statistics.collections > 0);
    fixture.audit();
}

#[test]
fn the_pauses_of_increments_are_added_up() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let roots = Box::new([list(&fixture, 4000, 200)[0]]);
    fixture.add_roots(&roots[..]);
    fixture.collect_to_the_end();
    let collector = fixture.heap.collector.lock();
    let (statistics, increments) = (&collector.statistics, &collector.increments);
    assert_eq!(statistics.collections, 1);
    assert!(statistics.pause_total_ns > increments.total_ns || increments.count == 0);
    assert!(statistics.pause_max_ns >= increments.longest_ns);
}

#[test]
fn a_collection_that_is_requested_takes_the_place_of_one_that_has_begun() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let list = list(&fixture, 4000, 200);
    let mut roots = Box::new([list[0]]);
    fixture.add_roots(&roots[..]);
    for _ in 0..4 {
        fixture.collect_increment();
    }
    assert_eq!(fixture.is_collecting(), fixture.has_increments());
    roots[0] = list[2000];
    fixture.collect();
    assert!(!fixture.is_collecting());
    assert!(list.iter().enumerate().all(|(at, &block)| fixture.is_taken(block) == (at >= 2000)));
    fixture.audit();
}

/// Where it is no longer known what was written all is marked at once.
#[test]
fn memory_that_is_replaced_between_increments_is_read() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let holder = fixture.allocate_clear(300_000, false);
    let list = list(&fixture, 4000, 200);
    let roots = Box::new([holder, list[0]]);
    fixture.add_roots(&roots[..]);
    while fixture.has_increments() && fixture.heap.collector.lock().increments.done() < 400_000 {
        fixture.collect_increment();
    }
    let young = fixture.allocate_clear(48, false);
    let page = (holder + 5 * PAGE).next_multiple_of(PAGE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: pages in the middle of a block of the test's, which it may replace as a program may.
    let made = unsafe { libc::mmap(page as *mut _, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_eq!(made as usize, page);
    set_word(page + 128, young);
    while fixture.is_collecting() {
        fixture.collect_increment();
    }
    fixture.heap.sweep_all();
    assert!(fixture.is_taken(young));
    fixture.audit();
}

/// Writes are recorded to so many bytes in an increment, at least.
const RECORDED: usize = 4 << 20;

/// A heap of which the first increment has recorded a part, and a block of it that is reachable.
fn partly_recorded() -> (HeapFixture, Box<[usize; 1]>) {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let roots = Box::new([list(&fixture, 4000, 200)[0]]);
    fixture.add_roots(&roots[..]);
    (0..3 * RECORDED / 300_000).for_each(|_| _ = fixture.allocate(300_000));
    assert!(!fixture.collect_increment());
    assert_eq!(fixture.is_collecting(), fixture.has_increments());
    (fixture, roots)
}

#[test]
fn a_heap_that_grows_before_all_writes_are_recorded_is_collected_in_increments() {
    let (fixture, roots) = partly_recorded();
    let newest = fixture.allocate(300_000);
    (0..2 * RECORDED / 300_000).for_each(|_| _ = fixture.allocate(300_000));
    let young = fixture.allocate_clear(48, false);
    set_word(newest, young);
    set_word(roots[0] + 8, newest);
    while fixture.has_increments() && !fixture.collect_increment() {
        assert!(fixture.is_collecting(), "it is not replaced by a whole collection");
    }
    fixture.heap.sweep_all();
    assert!(fixture.is_taken(roots[0]) && fixture.is_taken(newest) && fixture.is_taken(young));
    fixture.audit();
}

#[test]
fn the_child_of_a_fork_goes_on_with_a_collection_that_has_begun_to_record_writes() {
    let (fixture, roots) = partly_recorded();
    fixture.heap.collector.lock().generations.after_fork_in_child();
    while fixture.has_increments() && !fixture.collect_increment() {
        assert!(fixture.is_collecting(), "it is not replaced by a whole collection");
    }
    fixture.heap.sweep_all();
    assert!(fixture.is_taken(roots[0]));
    fixture.audit();
}

/// The clock of the child's thread begins at 0, so that the processor time of the parent's says nothing of it.
#[test]
fn the_child_of_a_fork_counts_elapsed_time_until_it_has_collected() {
    let fixture = HeapFixture::new(Mode::Collect, 1);
    fixture.collect();
    fixture.heap.before_fork();
    // SAFETY: the fixture's cache; the test is the heap's only thread.
    unsafe { fixture.heap.after_fork_in_child(fixture.caches[0]) };
    assert_eq!(fixture.heap.collector.lock().ended_cpu_ns, u64::MAX);
    fixture.collect();
    assert_ne!(fixture.heap.collector.lock().ended_cpu_ns, u64::MAX);
}

/// One increment for each large block would let the heap grow by as many blocks as there are increments.
#[test]
fn large_blocks_do_not_outrun_the_increments() {
    let fixture = HeapFixture::incremental(Mode::Collect);
    let roots = Box::new([list(&fixture, 20_000, 200)[0]]);
    fixture.add_roots(&roots[..]);
    // As much as was allocated so far may be until the collection ends.
    fixture.heap.budget.store(isize::MIN, Ordering::Relaxed);
    let mut blocks = 0;
    while blocks == 0 || fixture.is_collecting() {
        fixture.allocate(300_000);
        blocks += 1;
    }
    assert!(blocks < 20, "{blocks} were allocated before the collection ended");
    fixture.audit();
}

#[test]
fn increments_find_what_full_collections_find() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let ended = run(0..12, &settings(mode), Contents::Own, 1800, HeapFixture::collect_increment);
        assert!(ended > 20 || !HeapFixture::incremental(mode).has_increments(), "{ended} were incremental");
    }
}

/// With generations the full collections are incremental, and the young ones after them rely on the ages that they leave.
#[test]
fn full_collections_in_increments_leave_ages() {
    for (mode, contents) in
        [(Mode::Collect, Contents::Own), (Mode::Collect, Contents::Stray), (Mode::Hybrid, Contents::Stray)]
    {
        let settings = Settings { generations: true, ..settings(mode) };
        run(0..6, &settings, contents, 1200, HeapFixture::collect_full_or_young);
    }
    let fixture = HeapFixture::with(&Settings { generations: true, ..settings(Mode::Collect) }, 1);
    let kept = list(&fixture, 4000, 200);
    let roots = Box::new([kept[0]]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    fixture.heap.collector.lock().generations.begin();
    assert!(fixture.collect_to_the_end() > 4 || !fixture.has_increments());
    let is_aged = fixture.heap.collector.lock().generations.is_aged();
    assert!(is_aged || !fixture.has_increments(), "it leaves ages");
    let young = fixture.allocate_clear(48, false);
    set_word(kept[3999] + 8, young);
    fixture.collect_increment();
    assert!(!fixture.is_collecting() || !fixture.has_increments(), "the next one is young");
    fixture.heap.sweep_all();
    assert!(fixture.is_taken(young) && kept.iter().all(|&block| fixture.is_taken(block)));
    fixture.audit();
}

#[test]
fn with_generations_long_full_collections_are_incremental_unless_sweeping_is_eager() {
    for (eager, pause_ns) in [(false, Some(100_000_000)), (true, None)] {
        let generations =
            Settings { mode: Mode::Collect, generations: true, pause_ns: None, eager, ..Settings::new() };
        let fixture = HeapFixture::with(&generations, 1);
        let wanted = pause_ns.filter(|_| fixture.has_increments());
        assert_eq!(fixture.heap.collector.lock().increments.pause_ns, wanted);
    }
}

/// Words may point to any place of the heap, long before a block is there, and blocks keep what was in them before.
#[test]
fn increments_find_what_words_point_to_that_are_no_addresses() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let ended = run(0..12, &settings(mode), Contents::Stray, 1800, HeapFixture::collect_increment);
        assert!(ended > 20 || !HeapFixture::incremental(mode).has_increments(), "{ended} were incremental");
    }
}

#[test]
#[ignore = "slow: many thousand incremental collections"]
fn very_many_increments_find_what_full_collections_find() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let of = |contents| run(1000..1600, &settings(mode), contents, 8000, HeapFixture::collect_increment);
        let ended = of(Contents::Own) + of(Contents::Stray);
        std::println!("{ended} incremental collections in mode {}", mode.as_str());
    }
}
