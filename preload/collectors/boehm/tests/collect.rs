//! Both versions as collectors: what is reachable stays, what is not goes, from roots that the test gives.

use std::collections::BTreeSet;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use heaptoll_boehm::{Aborted, Boehm, CHUNK, Mutators, Version, Visitor};
use heaptoll_bw16::V16;
use heaptoll_bw26::V26;
use heaptoll_roots::{Origin, Root};
use heaptoll_runtime::{Heap, PieceKind};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

/// A program whose roots are the words in a list.
#[derive(Default)]
struct GivenRoots {
    words: Mutex<Vec<usize>>,
    refuses: AtomicBool,
}

impl GivenRoots {
    fn new() -> &'static GivenRoots {
        Box::leak(Box::default())
    }

    fn set(&self, words: &[usize]) {
        *self.words.lock().expect("no panic") = words.to_vec();
    }
}

impl Mutators for GivenRoots {
    fn start(&'static self) {}

    fn with_world_stopped(&self, _: &[Range<usize>], visitor: &mut dyn Visitor) -> Result<(), Aborted> {
        let words = self.words.lock().expect("no panic");
        let start = words.as_ptr() as usize;
        visitor.root(Root { range: start..start + 8 * words.len(), origin: Origin::Statics });
        if self.refuses.load(Ordering::Relaxed) {
            // As when the list of mappings cannot be read to its end.
            return Err(Aborted);
        }
        visitor.finish();
        Ok(())
    }

    fn after_fork_in_child(&self) {}
}

fn allocate<V: Version>(heap: &mut Boehm<V>, bytes: usize) -> usize {
    heap.allocate(bytes).expect("memory").as_ptr() as usize
}

/// Allocates, and adds it to the roots.
fn allocate_root<V: Version>(heap: &mut Boehm<V>, given: &GivenRoots, bytes: usize) -> usize {
    let block = allocate(heap, bytes);
    given.words.lock().expect("no panic").push(block);
    block
}

fn write(address: usize, word: usize) {
    // SAFETY: the tests write to live blocks.
    unsafe { (address as *mut usize).write(word) };
}

fn read(address: usize) -> usize {
    // SAFETY: the tests read live blocks.
    unsafe { (address as *const usize).read() }
}

fn live<V: Version>(heap: &Boehm<V>) -> BTreeSet<usize> {
    let mut live = BTreeSet::new();
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Live {
            live.insert(piece.block);
        }
    });
    live
}

fn collect<V: Version>(heap: &mut Boehm<V>) {
    assert_eq!((heap.collect(), heap.check()), (0, Ok(())));
}

/// A list of `length` blocks, each with the address of the next in its word `at`; the first's address.
fn list<V: Version>(heap: &mut Boehm<V>, length: usize, bytes: usize, at: usize) -> usize {
    (0..length).fold(0, |next, _| {
        let block = allocate(heap, bytes);
        write(block + 8 * at, next);
        block
    })
}

/// Tests of both versions.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod v16 {
            $(#[test] fn $name() { super::$name::<super::V16>(); })*
        }
        mod v26 {
            $(#[test] fn $name() { super::$name::<super::V26>(); })*
        }
    };
}

both!(
    random_graphs_keep_exactly_what_is_reachable,
    random_graphs_stay_whole_while_memory_is_refused,
    a_full_heap_refuses_instead_of_collecting_for_every_block,
    a_list_is_kept_by_a_pointer_to_the_inside_of_its_first,
    a_mark_stack_that_overflows_loses_nothing,
    garbage_in_a_loop_keeps_the_heap_at_a_size,
    what_is_reclaimed_is_zero_when_it_is_handed_out_again,
    what_no_process_can_have_is_refused_without_a_collection,
    a_collection_that_is_given_up_reclaims_nothing_and_the_next_does,
    what_realloc_moved_is_freed_and_what_it_kept_holds_nothing_after_its_end,
    large_objects_live_by_any_word_into_them_and_go_with_their_chunks,
    a_word_on_a_free_list_does_not_keep_the_list_alive,
    without_more_memory_what_is_dead_is_used_again,
    aligned_objects_are_kept_and_reclaimed_like_others,
    check_finds_what_a_write_beyond_a_block_does,
    a_pointer_to_what_is_no_object_is_none,
);

/// What a program does to a graph of objects.
#[derive(Debug, Clone)]
enum Step {
    /// Allocates an object of so many bytes and holds it in a root.
    Allocate(usize),
    /// Writes a pointer into an object, with an offset, to a word of another.
    Link(usize, usize, usize, usize),
    /// Forgets a root.
    Drop(usize),
    Collect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![8 => 8usize..200, 2 => 200usize..2100, 1 => 2100usize..20_000];
    let step = prop_oneof![
        6 => size.prop_map(Step::Allocate),
        6 => (any::<usize>(), any::<usize>(), any::<usize>(), any::<usize>())
            .prop_map(|(from, word, to, offset)| Step::Link(from, word, to, offset)),
        4 => any::<usize>().prop_map(Step::Drop),
        1 => Just(Step::Collect),
    ];
    vec(step, 1..300)
}

/// An object of the model: where it is, how long, and the words that were written to it.
struct Node {
    address: usize,
    bytes: usize,
    words: Vec<usize>,
}

fn random_graphs_keep_exactly_what_is_reachable<V: Version>() {
    proptest!(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() },
        |(steps in steps())| play::<V>(&steps, 0));
}

/// Found as a block that overlapped another: growth by nothing after a refused growth was entered as a free run. And
/// as a malloc without end: version 2.6 collected again and again where the first growth of all was refused.
fn random_graphs_stay_whole_while_memory_is_refused<V: Version>() {
    proptest!(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() },
        |(steps in steps(), every in 1u64..5)| play::<V>(&steps, every));
}

/// Found as a program that hung at its limit: each of its small blocks took a collection of the whole heap.
fn a_full_heap_refuses_instead_of_collecting_for_every_block<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let mut held = Vec::new();
    while heap.bytes() < 4 << 20 {
        held.push(allocate_root(&mut heap, given, 10_000));
    }
    heap.region_mut().fail_every(1);
    while let Some(block) = heap.allocate(1000) {
        given.words.lock().expect("no panic").push(block.as_ptr() as usize);
    }
    // What little remains is used and dropped, block by block.
    let given_out = (0..300).filter(|_| heap.allocate(100).is_some()).count();
    assert!(given_out < 300, "a full heap refuses");
    given.set(&held[..held.len() / 2]);
    assert!((0..100_000).all(|_| heap.allocate(100).is_some()), "half of it is garbage now");
    assert_eq!(heap.check(), Ok(()));
}

fn play<V: Version>(steps: &[Step], fail_every: u64) {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    heap.region_mut().fail_every(fail_every);
    let (mut nodes, mut roots): (Vec<Node>, Vec<usize>) = (Vec::new(), Vec::new());
    for step in steps {
        match *step {
            Step::Allocate(bytes) => {
                let Some(block) = heap.allocate(bytes) else {
                    assert!(fail_every != 0, "no memory for {bytes} bytes");
                    continue;
                };
                let address = block.as_ptr() as usize;
                let words = vec![0; bytes / 8];
                assert!((0..bytes / 8).all(|at| read(address + 8 * at) == 0), "a fresh block is zero");
                assert!(nodes.iter().all(|node| node.address != address), "{address:#x} is live");
                nodes.push(Node { address, bytes, words });
                roots.push(address);
            }
            Step::Link(from, word, to, offset) if !nodes.is_empty() => {
                let target = &nodes[to % nodes.len()];
                let pointer = target.address + offset % target.bytes;
                let count = nodes.len();
                let source = &mut nodes[from % count];
                let word = word % source.words.len();
                source.words[word] = pointer;
                write(source.address + 8 * word, pointer);
            }
            Step::Drop(at) if !roots.is_empty() => {
                roots.swap_remove(at % roots.len());
            }
            Step::Collect => {
                given.set(&roots);
                collect(&mut heap);
                nodes = reachable(nodes, &roots);
                let expected: BTreeSet<usize> = nodes.iter().map(|node| node.address).collect();
                assert_eq!(live(&heap), expected);
                for node in &nodes {
                    let whole =
                        node.words.iter().enumerate().all(|(at, &word)| read(node.address + 8 * at) == word);
                    assert!(whole, "the contents of {:#x}", node.address);
                }
            }
            Step::Link(..) | Step::Drop(_) => {}
        }
        // Any allocation may collect.
        given.set(&nodes.iter().map(|node| node.address).collect::<Vec<_>>());
    }
    assert_eq!(heap.check(), Ok(()));
}

fn reachable(nodes: Vec<Node>, roots: &[usize]) -> Vec<Node> {
    let of = |pointer: usize| {
        nodes.iter().position(|node| (node.address..node.address + node.bytes).contains(&pointer))
    };
    let mut seen = BTreeSet::new();
    let mut open: Vec<usize> = roots.iter().filter_map(|&root| of(root)).collect();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(nodes[node].words.iter().filter_map(|&word| of(word)));
        }
    }
    nodes.into_iter().enumerate().filter(|(at, _)| seen.contains(at)).map(|(_, node)| node).collect()
}

fn a_list_is_kept_by_a_pointer_to_the_inside_of_its_first<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    // A collection in between would find nothing of it.
    let first = list(&mut heap, 100, 40, 3);
    list(&mut heap, 100, 40, 3);
    given.set(&[first + 39]);
    collect(&mut heap);
    let (kept, mut at) = (live(&heap), first);
    assert_eq!(kept.len(), 100);
    while at != 0 {
        assert!(kept.contains(&at));
        at = read(at + 24);
    }
}

fn a_mark_stack_that_overflows_loses_nothing<V: Version>() {
    for limit in [1, 2, 3, 50] {
        let given = GivenRoots::new();
        let mut heap = Boehm::<V>::of(given);
        // One object points to all, each of which begins a list: much more than the stack holds at once.
        let wide = allocate(&mut heap, 200 * 8);
        let mut count = 1;
        for at in 0..200 {
            given.set(&[wide]);
            let first = list(&mut heap, at % 7, 16, at % 2);
            write(wide + 8 * at, first);
            count += at % 7;
        }
        heap.limit_stack(limit);
        collect(&mut heap);
        assert_eq!(live(&heap).len(), count, "a stack of {limit}");
    }
}

fn garbage_in_a_loop_keeps_the_heap_at_a_size<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let turn = |heap: &mut Boehm<V>, turn: usize| {
        let kept = list(heap, 1, 500, 0);
        given.set(&[kept]);
        for _ in 0..20 {
            allocate(heap, 16 << (turn % 6));
        }
        allocate(heap, 3000 + turn % 5000);
    };
    (0..3000).for_each(|at| turn(&mut heap, at));
    let size = heap.bytes();
    (0..30_000).for_each(|at| turn(&mut heap, at));
    assert_eq!((heap.bytes(), heap.check()), (size, Ok(())));
    assert!(heap.collections() > 20, "{} collections", heap.collections());
}

fn what_no_process_can_have_is_refused_without_a_collection<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let before = heap.collections();
    for bytes in [1 << 47, 1 << 62, isize::MAX as usize - 64] {
        assert_eq!((heap.allocate(bytes), heap.allocate_aligned(64, bytes)), (None, None), "{bytes}");
    }
    assert_eq!(heap.allocate_aligned(1 << 62, 8), None);
    assert_eq!((heap.collections(), heap.check()), (before, Ok(())));
}

fn what_is_reclaimed_is_zero_when_it_is_handed_out_again<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    for size in [16, 48, 100, 700, 2000, 2048, 5000, 40_000] {
        given.set(&[]);
        let before: Vec<usize> = (0..40).map(|_| allocate_root(&mut heap, given, size)).collect();
        for &block in &before {
            // SAFETY: a live block of that size.
            unsafe { (block as *mut u8).write_bytes(0xEE, size) };
        }
        // One stays, so that its chunk is swept object by object.
        given.set(&before[20..21]);
        collect(&mut heap);
        let again: Vec<usize> = (0..40).map(|_| allocate_root(&mut heap, given, size)).collect();
        let used_again = again.iter().any(|block| before.contains(block));
        assert!(used_again || size > 1000, "{size} bytes are used again, where several share a chunk");
        for block in again {
            assert_ne!(block, before[20], "the one that stays");
            assert!((0..size / 8).all(|at| read(block + 8 * at) == 0), "{size} bytes at {block:#x} are zero");
        }
    }
}

fn a_collection_that_is_given_up_reclaims_nothing_and_the_next_does<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    // Half of a list stays, so that the second version leaves chunks to be swept later.
    let blocks: Vec<usize> = (0..2000).map(|_| allocate_root(&mut heap, given, 32)).collect();
    let kept: Vec<usize> = blocks.iter().copied().step_by(2).collect();
    given.set(&kept);
    assert!(heap.collect_by_itself().is_ok());
    given.refuses.store(true, Ordering::Relaxed);
    assert_eq!(heap.collect(), 11, "EAGAIN");
    assert_eq!(heap.check(), Ok(()));
    let size = heap.bytes();
    let more: BTreeSet<usize> = (0..40_000).map(|_| allocate(&mut heap, 32)).collect();
    assert_eq!(more.len(), 40_000);
    assert!(kept.iter().all(|block| !more.contains(block)), "what is alive was handed out again");
    assert!(heap.bytes() > size, "the heap grows instead");
    given.refuses.store(false, Ordering::Relaxed);
    collect(&mut heap);
    assert_eq!(live(&heap), kept.iter().copied().collect());
}

fn what_realloc_moved_is_freed_and_what_it_kept_holds_nothing_after_its_end<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let held = allocate(&mut heap, 64);
    let block = allocate(&mut heap, 1000);
    let place = NonNull::new(block as *mut u8).expect("an address");
    write(block + 800, held);
    // SAFETY: a live block, which is given back once.
    unsafe {
        assert_eq!(heap.resize(place, 800), Ok(true));
        given.set(&[block]);
        collect(&mut heap);
        assert_eq!(live(&heap), [block].into(), "the word after the new end is gone");
        assert_eq!(heap.resize(place, 3000), Ok(false));
        assert_eq!(heap.resize(place, 100), Ok(false), "far too large for that now");
        assert_eq!(heap.discard(place), Ok(()));
        assert_eq!((heap.check(), live(&heap)), (Ok(()), [].into()));
        let large = heap.allocate(50_000).expect("memory");
        assert_eq!(heap.discard(large), Ok(()));
        assert_eq!((heap.check(), live(&heap)), (Ok(()), [].into()));
        assert!(heap.discard(NonNull::from(&given).cast()).is_err(), "not of this heap");
        assert!(heap.resize(large, 10).is_err(), "free already");
    }
}

fn large_objects_live_by_any_word_into_them_and_go_with_their_chunks<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    // So long that the way back to the first chunk takes several steps.
    let bytes = 300 * CHUNK;
    for offset in [0, 8, CHUNK, 127 * CHUNK + 3, bytes - 1] {
        let block = allocate(&mut heap, bytes);
        let other = allocate(&mut heap, 20 * CHUNK);
        write(block + bytes - 8, other);
        given.set(&[block + offset]);
        collect(&mut heap);
        assert_eq!(live(&heap), [block, other].into(), "{offset}");
        given.set(&[]);
        collect(&mut heap);
        assert_eq!(live(&heap), [].into());
    }
    assert!(heap.bytes() < 3 * 400 * CHUNK, "{} bytes: chunks are used again", heap.bytes());
}

fn a_word_on_a_free_list_does_not_keep_the_list_alive<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let block = allocate(&mut heap, 64);
    let dead = allocate(&mut heap, 64);
    given.set(&[block]);
    collect(&mut heap);
    // The dead one is free now, and linked to the others.
    given.set(&[block, dead]);
    collect(&mut heap);
    assert_eq!(live(&heap), [block].into());
}

fn without_more_memory_what_is_dead_is_used_again<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let kept = allocate(&mut heap, 100);
    given.set(&[kept]);
    heap.region_mut().fail_every(1);
    for _ in 0..20_000 {
        assert!(heap.allocate(100).is_some());
    }
    assert!(heap.allocate(1 << 20).is_none(), "too large");
    let mut held = vec![kept];
    while let Some(block) = heap.allocate(1000) {
        held.push(block.as_ptr() as usize);
        given.set(&held);
    }
    assert_eq!(heap.check(), Ok(()));
    given.set(&[kept]);
    assert!(heap.allocate(1000).is_some(), "all but one are dead");
    collect(&mut heap);
    assert_eq!(live(&heap), [kept].into());
}

fn aligned_objects_are_kept_and_reclaimed_like_others<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    for bits in 5..21 {
        let alignment = 1 << bits;
        let block = heap.allocate_aligned(alignment, 100).expect("memory").as_ptr() as usize;
        assert_eq!(block % alignment, 0);
        write(block + 88, allocate(&mut heap, 16));
        given.set(&[block + 99]);
        collect(&mut heap);
        assert_eq!(live(&heap), [block, read(block + 88)].into(), "aligned to {alignment}");
        given.set(&[]);
        collect(&mut heap);
        assert_eq!(live(&heap), [].into());
    }
}

fn check_finds_what_a_write_beyond_a_block_does<V: Version>() {
    // Links to nowhere, to the inside of an object, and to the object itself.
    for odd in [0x1234_5678, 8, 0] {
        let mut heap = Boehm::<V>::of(GivenRoots::new());
        let (first, second) = (allocate(&mut heap, 60), allocate(&mut heap, 60));
        assert_eq!(heap.check(), Ok(()));
        // Objects are handed out from a chunk's end on: what follows is free.
        let free = second - (first - second);
        write(free, if odd > 8 { odd } else { free + odd });
        assert!(heap.check().is_err(), "a link to {odd:#x}");
    }
}

fn a_pointer_to_what_is_no_object_is_none<V: Version>() {
    let given = GivenRoots::new();
    let mut heap = Boehm::<V>::of(given);
    let block = allocate(&mut heap, 600);
    let chunk = block & !(CHUNK - 1);
    let (start, end) = (heap.region().start(), heap.region().end());
    // Headers, what is left at a chunk's end, free chunks, and the world around.
    let front = if V::HEADER_INSIDE { chunk + 8 } else { 0 };
    given.set(&[front, chunk + CHUNK - 1, end - 1, end, end + CHUNK, start - 1, 0, usize::MAX]);
    collect(&mut heap);
    assert_eq!(live(&heap), [].into());
}
