//! The spans of a kind against a model: which blocks are out.

extern crate std;

use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::class::{CLASSES, class_of};
use crate::runs::Units;

struct Bench {
    room: Room,
    units: Units,
    spans: Spans,
    cache: Box<Cache>,
    kind: u8,
    epoch: u32,
    /// Addresses of blocks that are out.
    out: BTreeSet<usize>,
}

impl Bench {
    fn new(kind: u8) -> Bench {
        Bench {
            room: Room::new(),
            units: Units::new(),
            spans: Spans::new(),
            cache: Box::new(Cache::empty()),
            kind,
            epoch: 1,
            out: BTreeSet::new(),
        }
    }

    fn class(&self) -> &'static Class {
        &CLASS[self.kind as usize]
    }

    fn check(&self) {
        assert_eq!(self.spans.check(&self.room, self.kind, self.epoch), Ok(()));
        assert_eq!(self.units.check(&self.room), Ok(()));
    }

    /// Claims blocks as the heap does; says which.
    fn claim(&mut self, wanted: u32) -> Vec<usize> {
        let (class, size) = (self.class(), self.class().size as usize);
        loop {
            let got = self.spans.claim(&self.room, &mut self.cache, class, wanted);
            assert!(got <= wanted);
            if got > 0 {
                let mut blocks = Vec::new();
                for claim in &self.cache.pending[..self.cache.claims] {
                    let start = self.room.address(claim.unit);
                    for bit in (0..64).filter(|bit| claim.mask >> bit & 1 != 0) {
                        let block = claim.word as usize * 64 + bit;
                        assert!(block < class.blocks.into(), "blocks lie in their span");
                        blocks.push(start + block * size);
                    }
                }
                assert_eq!(blocks.len(), got as usize);
                self.cache.claims = 0;
                for &block in &blocks {
                    assert!(self.out.insert(block), "a block is handed out once");
                    // SAFETY: a block that was just claimed.
                    unsafe { (block as *mut u8).write_bytes(0x11, size) };
                }
                return blocks;
            }
            if self.sweep_next(true) {
                continue;
            }
            let taken = self.units.take(&self.room, class.units.into(), 1, false).expect("memory");
            self.spans.adopt(&self.room, taken, self.kind, self.epoch);
        }
    }

    /// Sweeps a span; says whether there was one. An empty one is listed or given back.
    fn sweep_next(&mut self, keep: bool) -> bool {
        let Some(unit) = self.spans.next_unswept(&self.room, self.kind) else { return false };
        match self.spans.sweep(&self.room, unit, self.epoch, true) {
            Swept::Empty if keep => self.spans.list(&self.room, unit),
            Swept::Empty => self.units.give(&self.room, unit, self.class().units.into(), false),
            Swept::Already | Swept::Kept => {}
        }
        assert_eq!(self.spans.sweep(&self.room, unit, self.epoch, true), Swept::Already, "once");
        true
    }

    fn is_free(&self, unit: UnitIndex) -> bool {
        self.room.kind(unit as usize) == crate::class::FREE
    }

    fn release(&mut self, address: usize) -> Result<(), Wrong> {
        let unit = self.room.first((address - self.room.base()) >> crate::class::UNIT_SHIFT);
        if self.spans.release(&self.room, address, self.epoch)? {
            self.units.give(&self.room, unit, self.class().units.into(), false);
        }
        Ok(())
    }

    /// A collection that keeps every block whose number `keeps` says.
    fn collect(&mut self, keeps: impl Fn(usize) -> bool) -> Vec<usize> {
        while self.sweep_next(false) {}
        self.check();
        let mut gone = Vec::new();
        for (number, &block) in self.out.iter().enumerate() {
            if !keeps(number) {
                gone.push(block);
                continue;
            }
            let unit = self.room.first((block - self.room.base()) >> crate::class::UNIT_SHIFT);
            let index = self.class().index(block - self.room.address(unit));
            // SAFETY: a span of the heap.
            let bits = unsafe { &(*self.room.span(unit)).bits[index / 64] };
            bits.marked.fetch_or(1 << (index % 64), Ordering::Relaxed);
        }
        gone.iter().for_each(|block| assert!(self.out.remove(block)));
        self.epoch += 1;
        self.spans.reset();
        gone
    }

    /// The blocks that the descriptors say are taken.
    fn taken(&self) -> BTreeSet<usize> {
        let class = self.class();
        let mut taken = BTreeSet::new();
        for unit in (0..self.room.units()).filter(|&unit| self.room.kind(unit) == self.kind) {
            if self.room.first(unit) as usize == unit {
                // SAFETY: a span of the heap.
                let span = unsafe { &*self.room.span(unit as u32) };
                let blocks = (0..class.blocks as usize).filter(|&block| span.is_taken(block));
                taken
                    .extend(blocks.map(|block| self.room.address(unit as u32) + block * class.size as usize));
            }
        }
        taken
    }
}

#[derive(Debug, Clone)]
enum Step {
    Claim(u32),
    Release(usize),
    /// Releases many, so that spans become empty.
    ReleaseFrom(usize, usize),
    Collect {
        modulus: usize,
        rest: usize,
    },
    SweepOne,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..80_u32).prop_map(Step::Claim),
        6 => any::<usize>().prop_map(Step::Release),
        2 => (any::<usize>(), 1..400_usize).prop_map(|(at, count)| Step::ReleaseFrom(at, count)),
        1 => (1..8_usize, 0..8_usize).prop_map(|(modulus, rest)| Step::Collect { modulus, rest }),
        1 => Just(Step::SweepOne),
    ]
}

fn kind() -> impl Strategy<Value = u8> {
    prop::sample::select(std::vec![
        1,
        3,
        7,
        class_of(1000) as u8,
        class_of(1100) as u8,
        class_of(5000) as u8,
        CLASSES as u8,
        CLASSES as u8 + 2,
        2 * CLASSES as u8,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_are_out_once_and_come_back_once(kind in kind(), steps in prop::collection::vec(step(), 1..80)) {
        let mut bench = Bench::new(kind);
        let size = bench.class().size as usize;
        for step in steps {
            match step {
                Step::Claim(wanted) => {
                    bench.claim(wanted);
                }
                Step::Release(at) => {
                    if let Some(at) = at.checked_rem(bench.out.len()) {
                        let block = *bench.out.iter().nth(at).expect("one of them");
                        assert_eq!(bench.release(block + size / 2), Err(Wrong::Inside));
                        assert_eq!(bench.release(block), Ok(()));
                        bench.out.remove(&block);
                        if bench.room.kind((block - bench.room.base()) >> crate::class::UNIT_SHIFT) == kind {
                            assert_eq!(bench.release(block), Err(Wrong::Free), "only once");
                        }
                    }
                }
                Step::ReleaseFrom(at, count) => {
                    if let Some(at) = at.checked_rem(bench.out.len()) {
                        for block in bench.out.iter().skip(at).take(count).copied().collect::<Vec<_>>() {
                            assert_eq!(bench.release(block), Ok(()));
                            bench.out.remove(&block);
                        }
                    }
                }
                Step::Collect { modulus, rest } => {
                    let gone = bench.collect(|number| number % modulus != rest);
                    bench.check();
                    for &block in gone.iter().step_by(7) {
                        assert_eq!(bench.release(block), Err(Wrong::Free), "it waits to be swept");
                    }
                }
                Step::SweepOne => {
                    bench.sweep_next(false);
                }
            }
            bench.check();
        }
        while bench.sweep_next(false) {}
        bench.check();
        assert_eq!(bench.taken(), bench.out);
        for block in bench.out.clone() {
            // SAFETY: a live block.
            let bytes = unsafe { core::slice::from_raw_parts(block as *const u8, size) };
            assert!(bytes.iter().all(|&byte| byte == 0x11), "poison is for others");
            assert_eq!(bench.release(block), Ok(()));
        }
        bench.check();
        assert_eq!(bench.units.free_bytes(), bench.room.units() * crate::class::UNIT, "empty spans are given back");
    }

    #[test]
    fn the_lowest_bits_are_the_lowest(bits in any::<u64>(), count in 0..70_u32) {
        let got = lowest(bits, count);
        assert_eq!(got & !bits, 0);
        assert_eq!(got.count_ones(), bits.count_ones().min(count));
        assert!((bits & !got).trailing_zeros() >= 64 - got.leading_zeros());
    }
}

#[test]
fn low_blocks_come_first() {
    let mut bench = Bench::new(3);
    let blocks = bench.claim(200);
    assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] + 48));
    for at in [150, 20, 70] {
        assert_eq!(bench.release(blocks[at]), Ok(()));
        bench.out.remove(&blocks[at]);
    }
    assert_eq!(bench.claim(3), [blocks[20], blocks[70], blocks[150]]);
}

#[test]
fn claims_stop_where_the_room_for_them_ends() {
    let mut bench = Bench::new(1);
    let blocks = bench.claim(1024);
    assert_eq!(blocks.len(), 1024, "sixteen words of a span");
    let more = bench.claim(2000);
    assert_eq!(more.len(), 64 * CLAIMS);
    bench.check();
}

#[test]
fn a_full_span_is_unlisted_and_listed_again_by_the_first_block_that_comes_back() {
    let mut bench = Bench::new(class_of(1000) as u8);
    let blocks: Vec<_> = (0..3).flat_map(|_| bench.claim(16)).collect();
    assert_eq!((blocks.len(), bench.spans.partial), (48, NONE));
    bench.check();
    for &at in &[17, 3, 40] {
        assert_eq!(bench.release(blocks[at]), Ok(()));
        bench.out.remove(&blocks[at]);
        assert_eq!(bench.spans.partial, bench.room.first(at / 16), "newest first");
        bench.check();
    }
    // From the middle of the list.
    for &block in &blocks[0..16] {
        if bench.out.remove(&block) {
            assert_eq!(bench.release(block), Ok(()));
            bench.check();
        }
    }
    assert!(bench.is_free(0));
    assert_eq!(bench.claim(2).len(), 2, "the two that came back");
    assert_eq!(bench.spans.partial, NONE);
    bench.check();
}

#[test]
fn sweeping_poisons_what_goes_and_leaves_what_stays() {
    for kind in [1, 3, class_of(5000) as u8, CLASSES as u8] {
        let mut bench = Bench::new(kind);
        let size = bench.class().size as usize;
        let mut blocks = Vec::new();
        while blocks.len() < 2 * bench.class().blocks as usize {
            blocks.extend(bench.claim(500));
        }
        let gone = bench.collect(|number| number % 3 != 0);
        while bench.sweep_next(true) {}
        bench.check();
        for block in blocks {
            // SAFETY: memory of the heap.
            let bytes = unsafe { core::slice::from_raw_parts(block as *const u8, size) };
            let expected = if gone.contains(&block) { POISON } else { 0x11 };
            assert!(bytes.iter().all(|&byte| byte == expected), "{kind}");
        }
    }
}
