//! Young collections: what they keep, what they reclaim, and that they find all that a full marking finds, after any
//! sequence of allocations, writes and frees. `TITHE_CHECK=young` compares each of them; on kernels that record no writes
//! all collections are full, and hold too.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use super::*;
use crate::generations::Generation;

/// Words of roots.
const ROOTS: usize = 24;

fn settings(mode: Mode) -> Settings {
    Settings {
        mode,
        min_headroom: 1 << 40,
        poison: true,
        generations: true,
        check_young: true,
        ..Settings::new()
    }
}

impl HeapFixture {
    fn generational(mode: Mode) -> HeapFixture {
        HeapFixture::with(&settings(mode), 1)
    }

    /// A collection that is young if it can be; returns whether it was.
    fn collect_young(&self) -> bool {
        let facts = crate::generations::Facts {
            due: true,
            live: self.heap.live_after_gc.load(Ordering::Relaxed),
            units: self.heap.reservation.units(),
        };
        let chosen = self.heap.collector.lock().generations.choose(&facts);
        assert_eq!(self.heap.collect(Reason::Budget), Ok(()));
        let aged = self.heap.collector.lock().generations.is_aged();
        chosen == Generation::Young && aged
    }

    /// Whether this kernel records writes.
    fn is_tracked(&self) -> bool {
        self.heap.collector.lock().generations.enabled
    }
}

#[test]
fn a_young_collection_keeps_old_garbage_and_reclaims_young() {
    for bytes in [16, 100, 1000, 5000, 300_000] {
        let fixture = HeapFixture::generational(Mode::Collect);
        let old: [usize; 2] = core::array::from_fn(|_| fixture.allocate_clear(bytes, false));
        let mut roots = std::boxed::Box::new([old[0], old[1]]);
        fixture.add_roots(&roots[..]);
        fixture.collect();
        roots[1] = 0;
        let young: [usize; 2] = core::array::from_fn(|_| fixture.allocate_clear(bytes, false));
        set_word(old[0], young[0]);
        let was_young = fixture.collect_young();
        assert_eq!(was_young, fixture.is_tracked());
        let taken = [old[0], old[1], young[0], young[1]].map(|block| fixture.is_taken(block));
        assert_eq!(taken, [true, was_young, true, false], "{bytes}");
        fixture.collect();
        let taken = [old[0], old[1], young[0]].map(|block| fixture.is_taken(block));
        assert_eq!(taken, [true, false, true], "{bytes}");
        fixture.audit();
    }
}

#[test]
fn an_old_block_that_is_not_written_keeps_what_it_points_to_for_ever() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let chain: Vec<usize> = (0..2000).map(|_| fixture.allocate_clear(64, false)).collect();
    chain.windows(2).for_each(|pair| set_word(pair[0], pair[1]));
    let roots = std::boxed::Box::new([chain[0]]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    for _ in 0..20 {
        (0..500).for_each(|_| assert_ne!(fixture.allocate_clear(64, false), 0));
        fixture.collect_young();
        assert!(chain.iter().all(|&block| fixture.is_taken(block)));
    }
    fixture.audit();
}

/// The word is written in the second page of an old block, and crosses a border of pages at half a word.
#[test]
fn an_address_across_two_pages_is_found() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let old = fixture.allocate_clear(100_000, false);
    let roots = std::boxed::Box::new([old]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    fixture.collect_young();
    let young = fixture.allocate_clear(48, false);
    let border = (old + PAGE).next_multiple_of(PAGE);
    // SAFETY: eight bytes in the old block, half of them in front of the border of two pages.
    unsafe { ((border - 4) as *mut usize).write_unaligned(young) };
    fixture.collect_young();
    assert!(fixture.is_taken(young));
    // Of another address only the lower half is written, in the first of the pages.
    fixture.collect();
    fixture.collect_young();
    let another = fixture.allocate_clear(48, false);
    // SAFETY: four bytes in the old block, in front of the border.
    unsafe { ((border - 4) as *mut u32).write(another as u32) };
    fixture.collect_young();
    assert!(fixture.is_taken(another));
    fixture.audit();
}

/// A block that a thread's cache held during a collection was not read: what its words point to is found by the next.
#[test]
fn a_block_from_a_cache_that_was_marked_unread_is_read_next() {
    let fixture = HeapFixture::with(&Settings { poison: false, ..settings(Mode::Hybrid) }, 1);
    let blocks: Vec<usize> = (0..40).map(|_| fixture.allocate_clear(5000, false)).collect();
    let target = fixture.allocate_clear(48, false);
    let mut roots = std::boxed::Box::new([blocks[3]]);
    fixture.add_roots(&roots[..]);
    // Its last page is written neither by free nor by malloc.
    set_word(blocks[7] + 4992, target);
    fixture.free(blocks[7]).expect("a live block");
    fixture.collect();
    assert!(!fixture.is_taken(target), "what is in a cache keeps nothing");
    let again = fixture.allocate(5000);
    assert_eq!(again, blocks[7], "the newest block of the cache");
    roots[0] = again;
    assert!((0..1000).any(|_| fixture.allocate(48) == target), "its place is used again");
    fixture.collect_young();
    assert!(fixture.is_taken(target), "a full collection would keep it");
    fixture.audit();
}

/// The program maps other memory in place of pages of its block: what it writes there is not recorded.
#[test]
fn pages_that_the_program_has_replaced_are_read() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let old = fixture.allocate_clear(300_000, false);
    let roots = std::boxed::Box::new([old]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    fixture.collect_young();
    let page = (old + 5 * PAGE).next_multiple_of(PAGE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: pages in the middle of a block of the test's, which it may replace as a program may.
    let made =
        unsafe { libc::mmap(page as *mut _, 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_eq!(made as usize, page);
    let young = fixture.allocate_clear(48, false);
    set_word(page + 128, young);
    for _ in 0..5 {
        fixture.collect_young();
        assert!(fixture.is_taken(young));
    }
    fixture.audit();
}

/// A word of an old block equals an address to which the heap grows much later.
#[test]
fn a_heap_that_has_grown_beyond_what_was_recorded_is_read_whole() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let old = fixture.allocate_clear(48, false);
    let roots = std::boxed::Box::new([old]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    let ahead = crate::reservation::AHEAD + fixture.heap.reservation.units() + 64;
    set_word(old, fixture.heap.reservation.base() + ahead * UNIT);
    fixture.collect();
    let block = loop {
        let block = fixture.allocate(8 << 20);
        if block + (8 << 20) > word(old) {
            break block;
        }
    };
    assert!(block <= word(old));
    assert!(!fixture.collect_young(), "what points there is not known");
    assert!(fixture.is_taken(block));
    fixture.audit();
}

/// What a model of the heap knows: the words of each block.
struct Mutator<'a> {
    fixture: &'a HeapFixture,
    roots: std::boxed::Box<[usize; ROOTS]>,
    blocks: BTreeMap<usize, Vec<usize>>,
    state: u64,
}

impl Mutator<'_> {
    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 20) as usize % below
    }

    /// Some block, as a rule.
    fn any(&mut self) -> Option<usize> {
        let at = self.random(ROOTS);
        let mut block = self.roots[at];
        for _ in 0..self.random(6) {
            let words = self.blocks.get(&block)?;
            let index = self.random(words.len());
            let next = self.blocks[&block][index];
            if next != 0 {
                block = next;
            }
        }
        (block != 0).then_some(block)
    }

    fn allocate(&mut self) {
        let bytes = match self.random(40) {
            0 => 33_000 + self.random(200_000),
            1..5 => 1000 + self.random(31_000),
            _ => 8 + self.random(200),
        };
        let block = self.fixture.allocate(bytes);
        let words = bytes / 8;
        // SAFETY: the block was just allocated with this many bytes.
        unsafe { (block as *mut u8).write_bytes(0, words * 8) };
        self.blocks.insert(block, std::vec![0; words]);
        if self.random(2) == 0 {
            let at = self.random(ROOTS);
            self.roots[at] = block;
        } else if let Some(holder) = self.any() {
            self.set(holder, block);
        }
    }

    fn set(&mut self, holder: usize, value: usize) {
        let Some(words) = self.blocks.get(&holder) else { return };
        let index = self.random(words.len());
        set_word(holder + index * 8, value);
        self.blocks.get_mut(&holder).expect("a block")[index] = value;
    }

    fn reallocate(&mut self) {
        let at = self.random(ROOTS);
        let block = self.roots[at];
        let Some(mut words) = self.blocks.get(&block).cloned() else { return };
        let bytes = 8 + if self.random(4) == 0 { self.random(300_000) } else { self.random(3000) };
        let place = NonNull::new(block as *mut u8).expect("a block");
        // SAFETY: the block is live, and other words that hold its address are not used again: see below.
        let new = unsafe { self.fixture.heap.reallocate(self.fixture.cache(0), place, bytes) };
        let new = new.expect("a live block") as usize;
        assert_ne!(new, 0);
        let kept = words.len().min(bytes / 8);
        words.resize(bytes / 8, 0);
        // SAFETY: the block has this many bytes.
        unsafe { ((new + kept * 8) as *mut u8).write_bytes(0, (words.len() - kept) * 8) };
        self.blocks.remove(&block);
        self.blocks.insert(new, words);
        self.replace(block, new);
    }

    /// Replaces an address in all roots and blocks.
    fn replace(&mut self, old: usize, new: usize) {
        for root in self.roots.iter_mut().filter(|root| **root == old) {
            *root = new;
        }
        for (&block, words) in &mut self.blocks {
            for (index, word) in words.iter_mut().enumerate().filter(|(_, word)| **word == old) {
                *word = new;
                set_word(block + index * 8, new);
            }
        }
    }

    fn free(&mut self) {
        let Some(block) = self.any() else { return };
        if self.blocks.remove(&block).is_some() {
            // Some words keep the address, as those of programs do.
            let dangling = self.random(2) == 0;
            if !dangling {
                self.replace(block, 0);
            } else {
                self.roots.iter_mut().filter(|root| **root == block).for_each(|root| *root = 0);
            }
            self.fixture.free(block).expect("a live block");
        }
    }

    /// Every reachable block is there with its words; the others are forgotten.
    fn verify(&mut self) {
        let mut found = BTreeSet::new();
        let mut grey: Vec<usize> = self.roots.to_vec();
        while let Some(block) = grey.pop() {
            let Some(words) = self.blocks.get(&block) else { continue };
            if !found.insert(block) {
                continue;
            }
            assert!(self.fixture.is_taken(block), "a reachable block was reclaimed");
            for (index, &expected) in words.iter().enumerate() {
                assert_eq!(word(block + index * 8), expected, "a block has changed");
            }
            grey.extend(words.iter().filter(|word| **word != 0));
        }
        self.blocks.retain(|block, _| found.contains(block));
    }
}

/// Random programs; returns how many of their collections were young.
fn run(seeds: core::ops::Range<u64>, mode: Mode, steps: usize) -> usize {
    let mut young = 0;
    for seed in seeds {
        let fixture = HeapFixture::generational(mode);
        let mut mutator = Mutator {
            fixture: &fixture,
            roots: std::boxed::Box::new([0; ROOTS]),
            blocks: BTreeMap::new(),
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        };
        fixture.add_roots(&mutator.roots[..]);
        let period = 2 + mutator.random(60);
        for _ in 0..steps {
            match mutator.random(16) {
                0..7 => mutator.allocate(),
                7..12 => {
                    if let (Some(holder), Some(value)) = (mutator.any(), mutator.any()) {
                        mutator.set(holder, value);
                    }
                }
                12 => {
                    let at = mutator.random(ROOTS);
                    mutator.roots[at] = mutator.any().unwrap_or(0);
                }
                13 if mode == Mode::Hybrid => mutator.free(),
                14 => mutator.reallocate(),
                _ => {}
            }
            if mutator.random(period) == 0 {
                young += usize::from(fixture.collect_young());
                mutator.verify();
                fixture.check();
            }
        }
        fixture.collect();
        mutator.verify();
        fixture.audit();
    }
    young
}

#[test]
fn young_collections_find_what_full_ones_find() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let young = run(0..12, mode, 600);
        assert!(young > 20 || !HeapFixture::generational(mode).is_tracked(), "{young} were young");
    }
}

#[test]
#[ignore = "slow: many thousand young collections"]
fn very_many_young_collections_find_what_full_ones_find() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let young = run(1000..1600, mode, 4000);
        std::println!("{young} young collections in mode {}", mode.as_str());
    }
}
