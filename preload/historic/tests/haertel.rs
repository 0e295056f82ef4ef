//! Haertel's heap against the model, and what makes it Haertel's.

use std::ptr::NonNull;

use heaptoll_historic::haertel::{CHUNK, Haertel};
use heaptoll_runtime::{Heap, Misuse, PieceKind, tally};

crate::kit::trial!(Haertel, reuses: true);

/// What the first table takes of the heap.
const TABLE: usize = 4 * CHUNK;

fn blocks<const N: usize>(heap: &mut Haertel, sizes: [usize; N]) -> [NonNull<u8>; N] {
    sizes.map(|bytes| heap.allocate(bytes).expect("memory"))
}

fn many(heap: &mut Haertel, count: usize, bytes: usize) -> Vec<NonNull<u8>> {
    (0..count).map(|_| heap.allocate(bytes).expect("memory")).collect()
}

fn give_back(heap: &mut Haertel, blocks: &[NonNull<u8>]) {
    for &block in blocks {
        // SAFETY: each is live, and freed once.
        assert_eq!(unsafe { heap.free(block) }, Ok(()));
    }
}

/// Free runs and fragments in order of address, bytes.
fn free_bytes(heap: &Haertel) -> Vec<usize> {
    let mut sizes = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Free {
            sizes.push(piece.bytes);
        }
    });
    sizes
}

fn chunk(block: NonNull<u8>) -> usize {
    block.as_ptr() as usize / CHUNK
}

#[test]
fn blocks_of_a_class_share_chunks_and_have_no_header() {
    let mut heap = Haertel::new();
    for class in 4..=11 {
        let bytes = 1usize << class;
        let blocks = many(&mut heap, CHUNK / bytes, bytes);
        assert!(blocks.iter().all(|&block| chunk(block) == chunk(blocks[0])), "{bytes}");
        assert!(blocks.iter().all(|&block| (block.as_ptr() as usize).is_multiple_of(bytes)), "{bytes}");
        // SAFETY: a live block.
        assert!(blocks.iter().all(|&block| unsafe { heap.usable(block) } == bytes), "{bytes}");
        let next = heap.allocate(bytes / 2 + 1).expect("memory");
        assert_ne!(chunk(next), chunk(blocks[0]), "a further one is in another chunk");
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn a_chunk_whose_last_fragment_is_freed_is_given_back_and_coalesced_whatever_the_order() {
    // Three chunks of three classes, between runs that stay.
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut heap = Haertel::new();
        blocks(&mut heap, [5000]);
        let classes = [(16, 256), (512, 8), (2048, 2)];
        let chunks = classes.map(|(bytes, count)| many(&mut heap, count, bytes));
        blocks(&mut heap, [5000]);
        for at in order {
            let (last, others) = chunks[at].split_last().expect("at least one");
            give_back(&mut heap, others);
            assert_eq!(heap.check(), Ok(()));
            let (bytes, count) = classes[at];
            let listed = free_bytes(&heap).iter().filter(|&&free| free == bytes).count();
            assert_eq!(listed, count - 1, "all but one are free fragments");
            give_back(&mut heap, &[*last]);
        }
        assert_eq!(free_bytes(&heap), [3 * CHUNK], "{order:?}");
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn free_fragments_of_a_chunk_stand_together_whatever_is_freed_between() {
    let mut heap = Haertel::new();
    let chunks: Vec<_> = (0..3).map(|_| many(&mut heap, 8, 512)).collect();
    for place in 0..7 {
        for chunk in [&chunks[1], &chunks[0], &chunks[2]] {
            give_back(&mut heap, &chunk[place..=place]);
            assert_eq!(heap.check(), Ok(()));
        }
    }
    give_back(&mut heap, &chunks[1][7..]);
    assert_eq!(heap.check(), Ok(()));
    // The middle chunk has left; the others' fourteen are taken again, one after the other.
    assert_eq!(
        many(&mut heap, 14, 512).iter().filter(|&&block| chunk(block) == chunk(chunks[1][0])).count(),
        0
    );
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn runs_are_found_from_where_the_last_search_or_free_ended() {
    let mut heap = Haertel::new();
    let runs = many(&mut heap, 8, 8192);
    give_back(&mut heap, &[runs[5], runs[1], runs[3]]);
    // The last freed is where a search begins; each search continues after the one before, and comes round.
    assert_eq!(many(&mut heap, 3, 8192), [runs[3], runs[5], runs[1]]);
    let search = heap.search().expect("it searches");
    assert!(search.longest <= 3, "{search:?}");
}

#[test]
fn a_run_is_split_and_its_rest_keeps_its_place() {
    let mut heap = Haertel::new();
    let [run, _] = blocks(&mut heap, [10 * CHUNK, 1 << 12]);
    give_back(&mut heap, &[run]);
    let parts = blocks(&mut heap, [4 * CHUNK, 5 * CHUNK + 1]);
    assert_eq!(parts[0], run);
    assert_eq!(chunk(parts[1]), chunk(run) + 4);
    assert_eq!(free_bytes(&heap), []);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn a_free_run_at_the_end_is_a_part_of_what_is_wanted() {
    let mut heap = Haertel::new();
    let [first] = blocks(&mut heap, [3 * CHUNK]);
    let [last] = blocks(&mut heap, [3 * CHUNK]);
    give_back(&mut heap, &[last]);
    assert_eq!(blocks(&mut heap, [5 * CHUNK]), [last]);
    assert_eq!(heap.region().mapped_bytes(), TABLE + 8 * CHUNK);
    give_back(&mut heap, &[first]);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_table_doubles_moves_and_leaves_a_free_run() {
    let mut heap = Haertel::new();
    let metadata = |heap: &Haertel| tally(heap).metadata;
    // 1024 entries are for 1023 chunks, since the first is the list's head; the table's own are among them.
    let mut blocks = many(&mut heap, 1019, CHUNK);
    assert_eq!((metadata(&heap), free_bytes(&heap)), (TABLE as u64, vec![]));
    blocks.extend(heap.allocate(CHUNK));
    assert_eq!((metadata(&heap), free_bytes(&heap)), (2 * TABLE as u64, vec![TABLE]));
    assert_eq!(heap.check(), Ok(()));
    give_back(&mut heap, &blocks);
    assert_eq!(heap.check(), Ok(()));
    // One request that makes it double more than once.
    heap.allocate(64 << 20).expect("memory");
    assert_eq!(metadata(&heap), 32 * TABLE as u64);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn a_refused_growth_leaves_the_table_where_it_was() {
    let mut heap = Haertel::new();
    many(&mut heap, 1019, CHUNK);
    heap.region_mut().fail_every(1);
    let before = tally(&heap);
    assert_eq!((heap.allocate(CHUNK), heap.allocate(16), heap.allocate(1 << 30)), (None, None, None));
    assert_eq!((tally(&heap), heap.check()), (before, Ok(())));
}

#[test]
fn resizing_keeps_a_class_trims_a_run_and_grows_over_what_is_free_after_it() {
    let mut heap = Haertel::new();
    let [small, run, following, last] = blocks(&mut heap, [100, 4 * CHUNK, 2 * CHUNK, CHUNK]);
    // SAFETY: live blocks, all of them.
    unsafe {
        assert_eq!(heap.resize(small, 128), Ok(true));
        assert_eq!(heap.resize(small, 65), Ok(true));
        assert_eq!(heap.resize(small, 129), Ok(false));
        assert_eq!(heap.resize(run, 4 * CHUNK + 1), Ok(false), "the neighbour is live");
        give_back(&mut heap, &[following]);
        assert_eq!(heap.resize(run, 6 * CHUNK + 1), Ok(false), "one byte more than there is");
        assert_eq!(heap.resize(run, 5 * CHUNK), Ok(true));
        assert_eq!((heap.usable(run), heap.check()), (5 * CHUNK, Ok(())));
        assert_eq!(heap.resize(run, 6 * CHUNK), Ok(true));
        assert_eq!((heap.usable(run), heap.check()), (6 * CHUNK, Ok(())));
        assert_eq!(heap.resize(run, 2 * CHUNK), Ok(true));
        assert_eq!((heap.usable(run), heap.check()), (2 * CHUNK, Ok(())));
        assert_eq!(heap.resize(last, 3000 * CHUNK), Ok(true), "at the end the heap grows, and its table");
        assert_eq!((heap.usable(last), heap.check()), (3000 * CHUNK, Ok(())));
        assert_eq!(heap.resize(run, 100), Ok(false), "half a chunk and less is a fragment");
    }
}

#[test]
fn a_block_that_shrinks_moves_to_a_smaller_fragment_where_there_is_one() {
    let mut heap = Haertel::new();
    let [run, small, _] = blocks(&mut heap, [CHUNK, 1000, 16]);
    // SAFETY: live blocks.
    unsafe { assert_eq!((heap.resize(small, 10), heap.resize(run, 10)), (Ok(false), Ok(false))) };
}

#[test]
fn a_block_that_shrinks_stays_where_no_fragment_can_be_had() {
    let mut heap = Haertel::new();
    let [run, small] = blocks(&mut heap, [CHUNK, 1000]);
    heap.region_mut().fail_every(1);
    // SAFETY: live blocks.
    unsafe {
        assert_eq!(heap.resize(small, 10), Ok(true));
        assert_eq!(heap.resize(run, 10), Ok(true));
        assert_eq!(heap.resize(run, 1000), Ok(false), "of this class there are some");
        assert_eq!((heap.usable(small), heap.usable(run)), (1024, CHUNK));
    }
}

#[test]
fn aligned_requests_are_fragments_runs_or_trimmed_runs() {
    let mut heap = Haertel::new();
    let got = [(64, 10), (2048, 100), (4096, 10), (64, 5000), (1 << 16, 10), (1 << 20, 70_000)].map(
        |(alignment, bytes)| {
            let block = heap.allocate_aligned(alignment, bytes).expect("memory");
            assert_eq!(block.as_ptr() as usize % alignment, 0);
            // SAFETY: a live block.
            unsafe { heap.usable(block) }
        },
    );
    assert_eq!(got, [64, 2048, 4096, 8192, 4096, 18 * CHUNK]);
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_table_reveals_misuse() {
    let mut heap = Haertel::new();
    let [run, other, last] = blocks(&mut heap, [4 * CHUNK, 4 * CHUNK, CHUNK]);
    let fragments = many(&mut heap, 8, 512);
    let table = NonNull::new(heap.region().start() as *mut u8).expect("the heap has begun");
    let mut tables = 0;
    // SAFETY: misuse is what is tested; addresses are the heap's, or refused for not being.
    unsafe {
        assert_eq!(heap.free(NonNull::<u128>::dangling().cast()), Err(Misuse::Foreign));
        assert_eq!(heap.free(run.add(16)), Err(Misuse::Damaged));
        assert_eq!(heap.free(run.add(CHUNK)), Err(Misuse::Damaged));
        assert_eq!(heap.resize(run.add(CHUNK), 1), Err(Misuse::Damaged));
        assert_eq!(heap.free(fragments[0].add(16)), Err(Misuse::Damaged));
        for at in 0..heap.region().mapped_bytes() / CHUNK {
            let mut place = None;
            heap.walk(&mut |piece| {
                if piece.kind == PieceKind::Metadata && piece.address == heap.region().start() + at * CHUNK {
                    place = Some(table.add(at * CHUNK));
                }
            });
            if let Some(place) = place {
                tables += 1;
                assert_eq!(heap.free(place), Err(Misuse::Foreign));
                assert_eq!(heap.free(place.add(CHUNK)), Err(Misuse::Foreign));
            }
        }
        give_back(&mut heap, &[run]);
        assert_eq!(heap.free(run), Err(Misuse::DoubleFree));
        give_back(&mut heap, &[other]);
        assert_eq!(heap.free(other), Err(Misuse::DoubleFree), "also when its chunks belong to a larger run");
        give_back(&mut heap, &fragments[..1]);
        assert_eq!(heap.free(fragments[0]), Err(Misuse::DoubleFree), "the chunk's first free one");
        assert_eq!(heap.resize(fragments[0], 500), Err(Misuse::DoubleFree));
        give_back(&mut heap, &fragments[1..]);
        for &fragment in &fragments {
            let misuse = heap.free(fragment).expect_err("the whole chunk is free");
            assert_eq!(misuse, Misuse::DoubleFree);
        }
    }
    assert_eq!((tables, heap.check()), (1, Ok(())));
    give_back(&mut heap, &[last]);
}

#[test]
fn the_check_finds_a_fragment_that_was_freed_twice() {
    let mut heap = Haertel::new();
    let fragments = many(&mut heap, 8, 512);
    give_back(&mut heap, &fragments[..2]);
    // SAFETY: the mistake: it is after the first of its chunk, which is not searched.
    assert_eq!(unsafe { heap.free(fragments[1]) }, Ok(()));
    assert_eq!(heap.check().expect_err("a ring").invariant, "a fragment is free once");
}

#[test]
fn the_worst_run_is_sought_past_every_free_run_there_is() {
    let mut heap = Haertel::new();
    let runs = many(&mut heap, 4000, CHUNK);
    for pair in runs.chunks(2) {
        give_back(&mut heap, &pair[..1]);
    }
    // More than any table that was left behind.
    blocks(&mut heap, [64 * CHUNK]);
    let search = heap.search().expect("it searches");
    assert!(search.longest >= 2000, "{search:?}");
}

#[test]
fn a_lone_fragment_that_comes_and_goes_cuts_a_chunk_each_time() {
    let mut heap = Haertel::new();
    let [first] = blocks(&mut heap, [16]);
    let mapped = heap.region().mapped_bytes();
    for _ in 0..10 {
        give_back(&mut heap, &[first]);
        assert_eq!(free_bytes(&heap), [CHUNK], "the worst case: 255 links made, and one chunk given back");
        assert_eq!(blocks(&mut heap, [16]), [first]);
    }
    assert_eq!(heap.region().mapped_bytes(), mapped);
}
