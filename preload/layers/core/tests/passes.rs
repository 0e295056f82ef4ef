//! A pass of the guard layer: of the freed blocks those are dead, and no others, that no word of the roots, of a block that
//! is not freed, or of a small freed block that is kept leads to, as a model of the memory has it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::PoisonError;

use heaptoll_layer_core::sweep::held;
use heaptoll_layer_core::sweep::side_tables::{LARGE, Marking, Tables};
use proptest::prelude::*;

use crate::marking::{CONFIGURATIONS, TURN, bytes};

/// Consecutive blocks in memory of the test's, some of which are freed.
struct Heap {
    live: Box<Tables>,
    freed: Box<Tables>,
    memory: Vec<u64>,
    /// Bytes of each block by its start, and whether it is freed.
    blocks: BTreeMap<usize, (usize, bool)>,
    roots: Vec<usize>,
}

impl Heap {
    fn new(blocks: &[(usize, usize)]) -> Heap {
        let total: usize = blocks.iter().map(|(gap, bytes)| gap * 8 + bytes).sum();
        let mut heap = Heap {
            live: Box::new(Tables::new()),
            freed: Box::new(Tables::of_freed()),
            memory: vec![0; total / 8],
            blocks: BTreeMap::new(),
            roots: Vec::new(),
        };
        let mut at = heap.memory.as_mut_ptr() as usize;
        for (gap, bytes) in blocks {
            at += gap * 8;
            heap.live.insert(at, *bytes).expect("memory");
            heap.blocks.insert(at, (*bytes, false));
            at += bytes;
        }
        heap
    }

    /// An address within the block of a number.
    fn address(&self, number: usize, offset: usize) -> usize {
        let (start, (bytes, _)) = self.blocks.iter().nth(number % self.blocks.len()).expect("a block");
        start + offset % bytes
    }

    fn free(&mut self, number: usize) {
        let start = self.address(number, 0);
        let (bytes, freed) = self.blocks.get_mut(&start).expect("a block");
        assert_eq!(self.live.remove(start), (!*freed).then_some(*bytes));
        if !core::mem::replace(freed, true) {
            // SAFETY: the test's own memory.
            unsafe { held::clear(start..start + *bytes) };
            self.freed.insert(start, *bytes).expect("memory");
        }
    }

    /// Writes an address at a multiple of 4.
    fn write(&mut self, number: usize, offset: usize, address: usize) {
        let start = self.address(number, 0);
        let at = start + offset % (self.blocks[&start].0 - 7) / 4 * 4;
        // SAFETY: within the block, which is the test's own memory.
        unsafe { (at as *mut usize).write_unaligned(address) };
    }

    /// What is read: blocks that are not freed. Neighbours are read as one range with the up to 16 bytes between them, also
    /// where a small freed block is there.
    fn runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (start, (bytes, _)) in self.blocks.iter().filter(|(_, (_, freed))| !freed) {
            match runs.last_mut() {
                Some(run) if start - run.end <= 16 => run.end = start + bytes,
                _ => runs.push(*start..start + bytes),
            }
        }
        runs
    }

    /// What words lead to, by the model.
    fn kept(&self) -> BTreeMap<usize, usize> {
        let words = |start: usize, bytes: usize| {
            // SAFETY: within a block, which is the test's own memory.
            (start..=start + bytes - 8).step_by(4).map(|at| unsafe { (at as *const usize).read_unaligned() })
        };
        let mut open: Vec<usize> =
            self.runs().into_iter().flat_map(|run| words(run.start, run.len())).collect();
        open.extend(&self.roots);
        let mut kept = BTreeMap::new();
        while let Some(address) = open.pop() {
            let Some((start, (bytes, true))) = self.blocks.range(..=address).next_back() else { continue };
            if address < start + bytes && kept.insert(*start, *bytes).is_none() && *bytes < LARGE {
                open.extend(words(*start, *bytes));
            }
        }
        kept
    }

    fn roots(&self) -> Range<usize> {
        let range = self.roots.as_ptr_range();
        range.start as usize..range.end as usize
    }

    fn mark(&self, markers: usize, own: usize, others: usize) -> usize {
        let mut marking = Marking::new();
        marking.configure(Some(markers));
        marking.set_limits(0, own, others);
        assert_eq!(marking.prepare(usize::MAX), markers);
        // SAFETY: the test's own words; there are no other threads.
        let (_, marked) = unsafe {
            marking.mark(&self.freed, markers, |roots| {
                roots.range(self.roots());
                self.live.runs(|run| roots.range(run));
            })
        };
        marked.live
    }

    /// A pass in each configuration; the last takes the dead blocks.
    fn pass(&mut self) {
        let kept = self.kept();
        let bytes = kept.values().sum();
        for (markers, own, others) in CONFIGURATIONS {
            assert_eq!(self.mark(markers, own, others), bytes, "{markers} {own} {others}");
            // SAFETY: there are no other threads.
            unsafe { self.freed.clear_marks() };
        }
        assert_eq!(self.mark(1, usize::MAX, usize::MAX), bytes);
        let mut dead = BTreeMap::new();
        // SAFETY: there are no other threads.
        unsafe { self.freed.dead(|start, bytes| assert_eq!(dead.insert(start, bytes), None)) };
        let all = std::mem::take(&mut self.blocks);
        let (gone, stays) =
            all.into_iter().partition(|(start, (_, freed))| *freed && !kept.contains_key(start));
        self.blocks = stays;
        let gone: BTreeMap<usize, (usize, bool)> = gone;
        assert!(dead.iter().eq(gone.iter().map(|(start, (bytes, _))| (start, bytes))), "{dead:?} {gone:?}");
        assert_eq!((self.freed.check(), self.live.check()), (Ok(()), Ok(())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_finds_the_freed_blocks_that_no_word_leads_to(
        blocks in proptest::collection::vec((0_usize..4, bytes()), 1..300),
        freed in proptest::collection::vec(any::<usize>(), 0..200),
        words in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<usize>(), any::<usize>()), 0..300),
        roots in proptest::collection::vec((any::<usize>(), any::<usize>()), 0..6),
    ) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut heap = Heap::new(&blocks);
        freed.iter().for_each(|number| heap.free(*number));
        // Some go to freed blocks, as a defect of a program has it.
        for (from, at, to, into) in words {
            let address = heap.address(to, into);
            heap.write(from, at, address);
        }
        heap.roots = roots.iter().map(|(block, at)| heap.address(*block, *at)).collect();
        heap.pass();
        // Without roots, and when the rest is freed, less is kept; at last nothing.
        heap.roots.clear();
        heap.pass();
        (0..heap.blocks.len()).for_each(|number| heap.free(number));
        heap.pass();
        heap.pass();
        prop_assert!(heap.blocks.values().all(|(_, freed)| *freed));
    }
}

#[test]
fn neighbours_are_read_as_one_range_and_others_apart() {
    let tables = Tables::new();
    let start = 0x1234_5670_0000_usize;
    for (offset, bytes) in [(0, 24), (32, 24), (64, 16), (96, 16), (248, 16), (8192, 5000), (1 << 20, LARGE)]
    {
        tables.insert(start + offset, bytes).expect("memory");
    }
    let mut runs = Vec::new();
    tables.runs(|run| runs.extend((!run.is_empty()).then(|| (run.start - start, run.len()))));
    assert_eq!(runs, [(0, 112), (248, 16), (8192, 5000), (1 << 20, LARGE)]);
}
