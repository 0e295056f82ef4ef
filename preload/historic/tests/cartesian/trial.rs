//! The heap against the model, and what is peculiar to it: which block it takes, when it splits, what it notices.

use std::ptr::NonNull;

use heaptoll_historic::cartesian::{Block, Cartesian, HEADER, SMALLEST};
use heaptoll_runtime::{Heap, Misuse, PAGE, PieceKind, WORD};

crate::kit::trial!(Cartesian, reuses: true);

/// Bytes to request so that the block has `size`.
const fn request(size: usize) -> usize {
    size - HEADER
}

fn allocate(heap: &mut Cartesian, size: usize) -> NonNull<u8> {
    heap.allocate(request(size)).expect("memory")
}

fn free(heap: &mut Cartesian, block: NonNull<u8>) {
    // SAFETY: the tests free what is live, once, where they use this.
    assert_eq!(unsafe { heap.free(block) }, Ok(()));
}

/// Free blocks as (address for the program, size).
fn free_blocks(heap: &Cartesian) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    heap.walk(&mut |piece| {
        if piece.kind == PieceKind::Free {
            blocks.push((piece.address + HEADER, piece.bytes));
        }
    });
    blocks
}

/// A heap whose only free blocks are these holes, kept apart by live blocks and freed in order of address.
fn with_holes(sizes: &[usize]) -> (Cartesian, Vec<NonNull<u8>>) {
    let mut heap = Cartesian::new();
    // One large free block to carve them all from.
    let all = allocate(&mut heap, sizes.iter().map(|size| size + SMALLEST).sum());
    free(&mut heap, all);
    let mut holes = Vec::new();
    for &size in sizes {
        holes.push(allocate(&mut heap, size));
        allocate(&mut heap, SMALLEST);
    }
    while let Some(&(_, size)) = free_blocks(&heap).last() {
        allocate(&mut heap, size);
    }
    holes.iter().for_each(|&hole| free(&mut heap, hole));
    assert_eq!(free_blocks(&heap).iter().map(|&(_, size)| size).collect::<Vec<_>>(), sizes);
    (heap, holes)
}

#[test]
fn the_descent_takes_the_smaller_child_that_suffices() {
    // The root is 800, its children 400 and 600.
    let (mut heap, holes) = with_holes(&[400, 800, 608]);
    assert_eq!(allocate(&mut heap, 304), holes[0], "both suffice: the smaller");
    let (mut heap, holes) = with_holes(&[400, 800, 608]);
    assert_eq!(allocate(&mut heap, 512), holes[2], "only the larger suffices");
    let (mut heap, holes) = with_holes(&[608, 800, 400]);
    assert_eq!(allocate(&mut heap, 512), holes[0], "wherever it hangs");
    let (mut heap, holes) = with_holes(&[400, 800, 608]);
    assert_eq!(allocate(&mut heap, 704), holes[1], "neither suffices: the root");
    let (mut heap, holes) = with_holes(&[608, 800, 608]);
    assert_eq!(allocate(&mut heap, 512), holes[0], "of two equal children the left one");
}

#[test]
fn better_fit_is_not_best_fit() {
    // 400 would do for 300, but it hangs below 320's sibling 500, which the descent does not visit.
    let (mut heap, holes) = with_holes(&[320, 800, 400, 496]);
    assert_eq!(allocate(&mut heap, 336), holes[2], "320 is too small: on to 496, and to 400 below it");
    let (mut heap, holes) = with_holes(&[448, 800, 400, 496]);
    assert_eq!(allocate(&mut heap, 336), holes[0], "448 is the smaller child, and 400 is not seen");
}

#[test]
fn the_lower_part_of_a_block_is_given_out_and_four_words_are_no_rest() {
    let (mut heap, holes) = with_holes(&[400]);
    assert_eq!(allocate(&mut heap, 304), holes[0]);
    assert_eq!(free_blocks(&heap), [(holes[0].as_ptr() as usize + 304, 96)]);
    for (rest, stays) in [(16, true), (SMALLEST, true), (SMALLEST + 16, false)] {
        let (mut heap, _) = with_holes(&[400]);
        let block = allocate(&mut heap, 400 - rest);
        // SAFETY: a live block.
        let usable = unsafe { heap.usable(block) };
        assert_eq!(usable == 400 - HEADER, stays, "a rest of {rest}");
        assert_eq!(free_blocks(&heap).is_empty(), stays, "a rest of {rest}");
    }
}

#[test]
fn a_block_that_shrinks_below_its_children_is_demoted() {
    // The root, 800, gives 704 and keeps 96: less than both its children.
    let (mut heap, holes) = with_holes(&[400, 800, 608]);
    assert_eq!(heap.depth(), Ok(2));
    allocate(&mut heap, 704);
    assert_eq!(heap.check(), Ok(()));
    assert_eq!(heap.depth(), Ok(3), "608, below it 400, below that 96");
    assert_eq!(allocate(&mut heap, 608), holes[2], "608 is the root now");
}

#[test]
fn of_equal_subtrees_the_left_one_is_merged_on_top() {
    let (mut heap, holes) = with_holes(&[208, 800, 208]);
    assert_eq!(allocate(&mut heap, 800), holes[1]);
    assert_eq!(allocate(&mut heap, 208), holes[2], "the right one hangs below the left one, and suffices");
}

#[test]
fn freed_neighbours_become_one_block_whatever_the_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut heap = Cartesian::new();
        let blocks = [1000, 1000, 1000].map(|bytes| heap.allocate(bytes).expect("memory"));
        order.iter().for_each(|&at| free(&mut heap, blocks[at]));
        assert_eq!(free_blocks(&heap), [(heap.region().start() + 2 * WORD, PAGE - 2 * WORD)], "{order:?}");
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn a_block_joins_neighbours_of_which_either_hangs_below_the_other() {
    for sizes in [[96, 208], [208, 96], [128, 128]] {
        let mut heap = Cartesian::new();
        let [below, block, above] = [sizes[0], 64, sizes[1]].map(|size| allocate(&mut heap, size));
        allocate(&mut heap, SMALLEST);
        free(&mut heap, above);
        free(&mut heap, below);
        free(&mut heap, block);
        assert_eq!(free_blocks(&heap)[0], (below.as_ptr() as usize, sizes[0] + 64 + sizes[1]));
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn the_heap_grows_by_the_request_in_whole_pages_as_in_sunos() {
    let mut heap = Cartesian::new();
    allocate(&mut heap, SMALLEST);
    assert_eq!(heap.region().mapped_bytes(), PAGE);
    // 4048 bytes are free at the end, and not taken into account.
    allocate(&mut heap, PAGE + 16);
    assert_eq!(heap.region().mapped_bytes(), 3 * PAGE);
    allocate(&mut heap, 4048 + PAGE - 16);
    assert_eq!(
        heap.region().mapped_bytes(),
        3 * PAGE,
        "what was free at the end was coalesced with the growth"
    );
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn a_block_is_resized_in_place_into_a_free_neighbour_and_back() {
    let (mut heap, holes) = with_holes(&[400, 96]);
    let block = allocate(&mut heap, 304);
    // SAFETY: a live block each time.
    unsafe {
        assert_eq!(heap.resize(block, request(400)), Ok(true), "96 bytes are free behind it");
        assert_eq!((block, heap.usable(block)), (holes[0], request(400)));
        assert_eq!(heap.resize(block, request(416)), Ok(false), "after that all is live");
        assert_eq!(heap.usable(block), request(400));
        assert_eq!(heap.resize(block, request(400 - SMALLEST)), Ok(true));
        assert_eq!(heap.usable(block), request(400 - SMALLEST), "a smallest block is given back");
    }
    assert_eq!(free_blocks(&heap)[0], (holes[0].as_ptr() as usize + 400 - SMALLEST, SMALLEST));
    assert_eq!(heap.check(), Ok(()));
}

#[test]
fn the_tree_reveals_double_frees_and_the_header_foreign_addresses_and_damage() {
    let mut heap = Cartesian::new();
    let blocks = [100, 200, 300, 400].map(|bytes| heap.allocate(bytes).expect("memory"));
    // SAFETY: blocks are freed twice, used after that and written beyond, which is what is tested; all addresses
    // are the heap's, or are refused for not being.
    unsafe {
        assert_eq!(heap.free(blocks[1]), Ok(()));
        assert_eq!(heap.free(blocks[1]), Err(Misuse::DoubleFree), "its own node");
        assert_eq!(heap.resize(blocks[1], 10), Err(Misuse::DoubleFree));
        assert_eq!(heap.resize(blocks[1], 1000), Err(Misuse::DoubleFree));
        assert_eq!(
            heap.free(blocks[1].add(16)),
            Err(Misuse::DoubleFree),
            "without a header, but in a free block"
        );
        assert_eq!(heap.free(blocks[0]), Ok(()));
        assert_eq!(heap.free(blocks[1]), Err(Misuse::DoubleFree), "swallowed by the block before it");
        blocks[3].write_bytes(0, 400);
        assert_eq!(heap.free(blocks[3].add(32)), Err(Misuse::Damaged), "inside a live block");
        assert_eq!(heap.free(blocks[3].add(8)), Err(Misuse::Foreign));
        assert_eq!(heap.free(NonNull::<u128>::dangling().cast()), Err(Misuse::Foreign));
        let start = NonNull::new(heap.region().start() as *mut u8).expect("a region");
        assert_eq!(heap.free(start), Err(Misuse::Foreign), "before the first block");
        assert_eq!(heap.check(), Ok(()), "misuse was refused");
        blocks[2].add(heap.usable(blocks[2])).write(1);
        assert_eq!(heap.free(blocks[3]), Err(Misuse::Damaged));
    }
    assert!(heap.check().is_err());
}

#[test]
fn a_heap_without_memory_knows_no_address() {
    let mut heap = Cartesian::new();
    for address in [1, 8, 16, PAGE, usize::MAX - 15, usize::MAX] {
        let block = NonNull::new(address as *mut u8).expect("not null");
        // SAFETY: no such block is there, which is what must be noticed.
        assert_eq!(unsafe { heap.free(block) }, Err(Misuse::Foreign), "{address:#x}");
    }
    assert_eq!((heap.check(), heap.depth()), (Ok(()), Ok(0)));
}

#[test]
fn a_size_that_reaches_into_a_free_block_is_damage() {
    let mut heap = Cartesian::new();
    let blocks = [100, 200, 300].map(|bytes| heap.allocate(bytes).expect("memory"));
    free(&mut heap, blocks[1]);
    let header = Block::of_user(blocks[0].as_ptr() as usize);
    // SAFETY: a live block whose header is overwritten, which is what is tested.
    unsafe {
        header.write(header.size() + 32);
        assert_eq!(heap.free(blocks[0]), Err(Misuse::Damaged));
        assert_eq!(heap.resize(blocks[0], 10), Err(Misuse::Damaged));
    }
}

/// The invariant that `check` reports when a word of a free block, counted from its header, was overwritten.
fn check_after(word: usize, value: impl Fn(&[NonNull<u8>]) -> usize) -> Option<&'static str> {
    // 800 is the root, with children 400 and 608; 208 hangs to the left of 608.
    let (heap, holes) = with_holes(&[400, 800, 208, 608]);
    assert_eq!(heap.check(), Ok(()));
    let root = Block::of_user(holes[1].as_ptr() as usize).address() as *mut usize;
    // SAFETY: a word of a free block.
    unsafe { root.add(word).write(value(&holes)) };
    heap.check().err().map(|damage| damage.invariant)
}

#[test]
fn check_sees_damaged_links_and_never_follows_them_in_a_circle() {
    let header = |block: &NonNull<u8>| block.as_ptr() as usize - HEADER;
    let of = |at: usize| move |holes: &[NonNull<u8>]| header(&holes[at]);
    assert_eq!(check_after(1, of(1)), Some("what hangs to the left lies below"));
    assert_eq!(check_after(1, of(3)), Some("what hangs to the left lies below"));
    assert_eq!(check_after(2, of(1)), Some("what hangs to the right lies above"));
    assert_eq!(check_after(2, of(0)), Some("what hangs to the right lies above"));
    assert_eq!(check_after(1, |_| 8), Some("the tree's links lead to places of blocks in the heap"));
    assert_eq!(check_after(2, |_| !7), Some("the tree's links lead to places of blocks in the heap"));
    assert_eq!(check_after(1, |holes| header(&holes[0]) + 32), Some("a free block has a valid header"));
    assert_eq!(check_after(0, |_| Block::header_for(592)), Some("no block hangs below a smaller one"));
    assert_eq!(check_after(0, |_| 0), Some("a free block has a valid header"));
    assert_eq!(check_after(0, |_| Block::header_for(784)), Some("a block has a valid header"));
    assert_eq!(check_after(0, |_| Block::header_for(832)), Some("free neighbours are coalesced"));
    // The third word below the header is for walks, and its content is nothing to them.
    assert_eq!(check_after(3, |_| 1), None);
}

#[test]
fn check_sees_a_circle_further_down() {
    let (heap, holes) = with_holes(&[400, 800, 208, 608]);
    let word = |at: usize, word: usize| (holes[at].as_ptr() as usize - HEADER + word * WORD) as *mut usize;
    // SAFETY: words of free blocks. 208 gets its parent for a right child.
    unsafe { word(2, 2).write(holes[3].as_ptr() as usize - HEADER) };
    assert_eq!(heap.check().err().map(|damage| damage.invariant), Some("no block hangs below a smaller one"));
    // SAFETY: a word of a free block of the test's heap. It gets a size that lets the parent hang there.
    unsafe { word(2, 0).write(Block::header_for(608)) };
    assert!(heap.check().is_err());
}

#[test]
fn check_sees_a_free_block_inside_a_live_one() {
    let mut heap = Cartesian::new();
    let block = heap.allocate(400).expect("memory");
    // SAFETY: a program that writes a false header into its block and frees what follows. No metadata of the algorithm
    // can show it; the walk can.
    unsafe {
        let inner = block.add(48);
        Block::of_user(inner.as_ptr() as usize).write(64);
        assert_eq!(heap.free(inner), Ok(()));
    }
    assert_eq!(
        heap.check().err().map(|damage| damage.invariant),
        Some("what is in the tree is a block of the heap")
    );
}
