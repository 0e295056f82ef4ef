//! The spans of a span class against a model: which blocks are reserved.

extern crate std;

use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::class::{CLASSES, class_of};
use crate::runs::Units;

struct SpanFixture {
    reservation: HeapReservation,
    units: Units,
    spans: Spans,
    cache: Box<Cache>,
    span_class: u8,
    epoch: u32,
    /// Addresses of reserved blocks.
    out: BTreeSet<usize>,
}

impl SpanFixture {
    fn new(span_class: u8) -> SpanFixture {
        let mut cache = Box::new(Cache::empty());
        cache.open();
        SpanFixture {
            reservation: HeapReservation::new(),
            units: Units::new(),
            spans: Spans::new(),
            cache,
            span_class,
            epoch: 1,
            out: BTreeSet::new(),
        }
    }

    fn class(&self) -> &'static SizeClass {
        &CLASS[self.span_class as usize]
    }

    fn check(&self) {
        assert_eq!(self.spans.check(&self.reservation, self.span_class, self.epoch), Ok(()));
        assert_eq!(self.units.check(&self.reservation), Ok(()));
    }

    /// Reserves blocks as the heap does, until there are so many; returns their addresses.
    fn reserve(&mut self, wanted: u32) -> Vec<usize> {
        let (class, list) = (self.class(), usize::from(self.span_class));
        let mut blocks = Vec::new();
        while blocks.len() < wanted as usize {
            let left = wanted - blocks.len() as u32;
            let got = self.spans.reserve(&self.reservation, &mut self.cache, self.span_class, left, false);
            assert!(got <= left && self.cache.length(list) == got);
            for _ in 0..got {
                let block = self.cache.remove(list) as usize;
                let unit =
                    self.reservation.first((block - self.reservation.base()) >> crate::class::UNIT_SHIFT);
                assert!(class.is_block(block - self.reservation.address(unit)), "blocks lie in their span");
                assert!(self.out.insert(block), "a block is handed out once");
                // SAFETY: a block that was just reserved.
                unsafe { (block as *mut u8).write_bytes(0x11, class.size as usize) };
                blocks.push(block);
            }
            let home = self.cache.home;
            if got > 0 || self.sweep_next(true) || self.spans.adopt(&self.reservation, home) {
                continue;
            }
            let taken = self.units.take(&self.reservation, class.units.into(), 1, false).expect("memory");
            self.spans.initialise(&self.reservation, taken, self.span_class, self.epoch, home);
        }
        assert!(self.cache.is_empty() && self.cache.remove(list).is_null());
        blocks
    }

    /// Sweeps a span; returns whether there was one. An empty one is listed or released.
    fn sweep_next(&mut self, keep: bool) -> bool {
        let Some(unit) = self.spans.next_unswept(&self.reservation, self.span_class) else { return false };
        let [swept, again] = [(); 2].map(|()| self.spans.sweep(&self.reservation, unit, self.epoch, true));
        assert_eq!(again, SweepOutcome::Already, "once");
        match swept {
            SweepOutcome::Empty if keep => self.spans.list(&self.reservation, unit, self.cache.home),
            SweepOutcome::Empty => {
                self.units.release(&self.reservation, unit, self.class().units.into(), false)
            }
            SweepOutcome::Already | SweepOutcome::Kept => {}
        }
        true
    }

    fn is_free(&self, unit: UnitIndex) -> bool {
        self.reservation.span_class(unit as usize) == crate::class::FREE
    }

    fn release(&mut self, address: usize) -> Result<(), ReleaseError> {
        let unit = self.reservation.first((address - self.reservation.base()) >> crate::class::UNIT_SHIFT);
        if self.spans.release(&self.reservation, address, self.epoch, self.cache.home)? {
            self.units.release(&self.reservation, unit, self.class().units.into(), false);
        }
        Ok(())
    }

    /// A collection that keeps every block whose number satisfies `keeps`.
    fn collect(&mut self, keeps: impl Fn(usize) -> bool) -> Vec<usize> {
        while self.sweep_next(false) {}
        self.check();
        let mut gone = Vec::new();
        for (number, &block) in self.out.iter().enumerate() {
            if !keeps(number) {
                gone.push(block);
                continue;
            }
            let unit = self.reservation.first((block - self.reservation.base()) >> crate::class::UNIT_SHIFT);
            let index = self.class().index(block - self.reservation.address(unit));
            // SAFETY: the first unit of a span of the heap; the test is its only thread.
            let bits = unsafe { &(*self.reservation.span(unit)).bits[index / 64] };
            bits.marked.fetch_or(1 << (index % 64), Ordering::Relaxed);
        }
        gone.iter().for_each(|block| assert!(self.out.remove(block)));
        self.epoch += 1;
        self.spans.reset();
        gone
    }

    /// The blocks that are taken according to the descriptors.
    fn taken(&self) -> BTreeSet<usize> {
        let class = self.class();
        let mut taken = BTreeSet::new();
        for unit in
            (0..self.reservation.units()).filter(|&unit| self.reservation.span_class(unit) == self.span_class)
        {
            if self.reservation.first(unit) as usize == unit {
                // SAFETY: the first unit of a span of the heap; the test is its only thread.
                let span = unsafe { &*self.reservation.span(unit as u32) };
                let blocks = (0..class.blocks as usize).filter(|&block| span.is_taken(block));
                taken.extend(
                    blocks.map(|block| self.reservation.address(unit as u32) + block * class.size as usize),
                );
            }
        }
        taken
    }
}

#[derive(Debug, Clone)]
enum Step {
    Reserve(u32),
    Release(usize),
    /// Releases many, so that spans become empty.
    ReleaseFrom(usize, usize),
    Collect {
        modulus: usize,
        rest: usize,
    },
    SweepOne,
    /// From now on a cache of this home.
    Home(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..80_u32).prop_map(Step::Reserve),
        6 => any::<usize>().prop_map(Step::Release),
        2 => (any::<usize>(), 1..400_usize).prop_map(|(at, count)| Step::ReleaseFrom(at, count)),
        1 => (1..8_usize, 0..8_usize).prop_map(|(modulus, rest)| Step::Collect { modulus, rest }),
        1 => Just(Step::SweepOne),
        2 => (0..3_u8).prop_map(Step::Home),
    ]
}

fn span_class() -> impl Strategy<Value = u8> {
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
    fn blocks_are_out_once_and_come_back_once(span_class in span_class(), steps in prop::collection::vec(step(), 1..80)) {
        let mut fixture = SpanFixture::new(span_class);
        let size = fixture.class().size as usize;
        for step in steps {
            match step {
                Step::Reserve(wanted) => {
                    fixture.reserve(wanted);
                }
                Step::Release(at) => {
                    if let Some(at) = at.checked_rem(fixture.out.len()) {
                        let block = *fixture.out.iter().nth(at).expect("one of them");
                        assert_eq!(fixture.release(block + size / 2), Err(ReleaseError::Inside));
                        assert_eq!(fixture.release(block), Ok(()));
                        fixture.out.remove(&block);
                        if fixture.reservation.span_class((block - fixture.reservation.base()) >> crate::class::UNIT_SHIFT) == span_class {
                            assert_eq!(fixture.release(block), Err(ReleaseError::Free), "only once");
                        }
                    }
                }
                Step::ReleaseFrom(at, count) => {
                    if let Some(at) = at.checked_rem(fixture.out.len()) {
                        for block in fixture.out.iter().skip(at).take(count).copied().collect::<Vec<_>>() {
                            assert_eq!(fixture.release(block), Ok(()));
                            fixture.out.remove(&block);
                        }
                    }
                }
                Step::Collect { modulus, rest } => {
                    let gone = fixture.collect(|number| number % modulus != rest);
                    fixture.check();
                    for &block in gone.iter().step_by(7) {
                        assert_eq!(fixture.release(block), Err(ReleaseError::Free), "it waits to be swept");
                    }
                }
                Step::SweepOne => {
                    fixture.sweep_next(false);
                }
                Step::Home(home) => fixture.cache.home = home,
            }
            fixture.check();
        }
        while fixture.sweep_next(false) {}
        fixture.check();
        assert_eq!(fixture.taken(), fixture.out);
        for block in fixture.out.clone() {
            // SAFETY: a reserved block of this size.
            let bytes = unsafe { core::slice::from_raw_parts(block as *const u8, size) };
            assert!(bytes.iter().all(|&byte| byte == 0x11), "only other blocks are poisoned");
            assert_eq!(fixture.release(block), Ok(()));
        }
        fixture.check();
        assert_eq!(fixture.units.free_bytes(), fixture.reservation.units() * crate::class::UNIT, "empty spans are released");
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
    let mut fixture = SpanFixture::new(3);
    let blocks = fixture.reserve(200);
    assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] + 48));
    for at in [150, 20, 70] {
        assert_eq!(fixture.release(blocks[at]), Ok(()));
        fixture.out.remove(&blocks[at]);
    }
    assert_eq!(fixture.reserve(3), [blocks[20], blocks[70], blocks[150]]);
}

#[test]
fn a_full_span_is_unlisted_and_listed_again_by_the_first_block_that_comes_back() {
    let mut fixture = SpanFixture::new(class_of(1000) as u8);
    let blocks: Vec<_> = (0..3).flat_map(|_| fixture.reserve(16)).collect();
    assert_eq!((blocks.len(), fixture.spans.lists.first(0)), (48, NONE));
    fixture.check();
    for &at in &[17, 3, 40] {
        assert_eq!(fixture.release(blocks[at]), Ok(()));
        fixture.out.remove(&blocks[at]);
        assert_eq!(fixture.spans.lists.first(0), fixture.reservation.first(at / 16), "newest first");
        fixture.check();
    }
    // From the middle of the list.
    for &block in &blocks[0..16] {
        if fixture.out.remove(&block) {
            assert_eq!(fixture.release(block), Ok(()));
            fixture.check();
        }
    }
    assert!(fixture.is_free(0));
    assert_eq!(fixture.reserve(2).len(), 2, "the two that came back");
    assert_eq!(fixture.spans.lists.first(0), NONE);
    fixture.check();
}

#[test]
fn a_home_takes_blocks_of_its_own_spans_and_adopts_another_where_it_has_none() {
    let mut fixture = SpanFixture::new(class_of(1000) as u8);
    let blocks = fixture.reserve(40);
    let firsts = |fixture: &SpanFixture| [0, 1, 2].map(|home| fixture.spans.lists.first(home));
    assert_eq!(firsts(&fixture), [2, NONE, NONE], "two are full");
    fixture.cache.home = 1;
    for at in [3, 20] {
        assert_eq!(fixture.release(blocks[at]), Ok(()));
        fixture.out.remove(&blocks[at]);
        fixture.check();
    }
    assert_eq!(firsts(&fixture), [2, 1, NONE], "a full one goes to the home that frees");
    fixture.cache.home = 0;
    assert_eq!(fixture.release(blocks[4]), Ok(()));
    fixture.out.remove(&blocks[4]);
    assert_eq!(firsts(&fixture), [2, 1, NONE], "one with free blocks stays in its home");
    fixture.cache.home = 1;
    let mut own = fixture.reserve(3);
    own.sort_unstable();
    assert_eq!(own, [blocks[3], blocks[4], blocks[20]]);
    assert_eq!(firsts(&fixture), [2, NONE, NONE]);
    assert_eq!(fixture.reserve(1).len(), 1);
    assert_eq!(firsts(&fixture), [NONE, 2, NONE], "the other's, before there is a new one");
    fixture.check();
}

#[test]
fn sweeping_poisons_what_goes_and_leaves_what_stays() {
    for span_class in [1, 3, class_of(5000) as u8, CLASSES as u8] {
        let mut fixture = SpanFixture::new(span_class);
        let size = fixture.class().size as usize;
        let mut blocks = Vec::new();
        while blocks.len() < 2 * fixture.class().blocks as usize {
            blocks.extend(fixture.reserve(500));
        }
        let gone = fixture.collect(|number| number % 3 != 0);
        while fixture.sweep_next(true) {}
        fixture.check();
        for block in blocks {
            // SAFETY: mapped memory of the heap of a block's size.
            let bytes = unsafe { core::slice::from_raw_parts(block as *const u8, size) };
            let expected = if gone.contains(&block) { POISON } else { 0x11 };
            assert!(bytes.iter().all(|&byte| byte == expected), "{span_class}");
        }
    }
}

#[test]
fn links_that_leave_the_heap_or_do_not_end_are_damage() {
    let mut fixture = SpanFixture::new(class_of(1000) as u8);
    fixture.reserve(3);
    fixture.check();
    let span = fixture.reservation.span(fixture.spans.lists.first(0));
    let beyond = fixture.reservation.units() as UnitIndex;
    for link in [beyond, UnitIndex::MAX - 1, fixture.spans.lists.first(0)] {
        // SAFETY: the first unit of a span of the heap; the test is its only thread.
        let former = unsafe { core::mem::replace(&mut (*span).next, link) };
        let checked = fixture.spans.check(&fixture.reservation, fixture.span_class, fixture.epoch);
        assert!(checked.is_err(), "a link to unit {link}");
        // SAFETY: the first unit of a span of the heap; the test is its only thread.
        unsafe { (*span).next = former };
    }
    let partial = core::mem::replace(&mut fixture.spans.lists.firsts[0], NONE);
    let checked = fixture.spans.check(&fixture.reservation, fixture.span_class, fixture.epoch);
    assert!(checked.is_err(), "a span that is listed and in no list");
    fixture.spans.lists.firsts = [NONE, partial, NONE, NONE, NONE, NONE, NONE, NONE];
    let checked = fixture.spans.check(&fixture.reservation, fixture.span_class, fixture.epoch);
    assert!(checked.is_err(), "a span in the list of another home");
    fixture.spans.lists.firsts = [partial, NONE, NONE, NONE, NONE, NONE, NONE, NONE];
    fixture.check();
}
