//! Random programs against a model of what they reach: it knows the words of each block.

use core::ops::Range;
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::vec;
use std::vec::Vec;

use super::*;

/// Words of roots: few, so that much dies, or so many that most of what is allocated lives.
const ROOTS: [usize; 2] = [24, 500];

/// What the words of blocks are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Zero, and addresses of blocks.
    Own,
    /// Also what was in the block before, and words that point to any place of the heap.
    Stray,
}

/// A program, and the words that it has written.
struct Mutator<'a> {
    fixture: &'a HeapFixture,
    contents: Contents,
    roots: Box<[usize]>,
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

    fn step(&mut self, mode: Mode) {
        match self.random(16) {
            0..7 => self.allocate(),
            7..12 => {
                if let (Some(holder), Some(value)) = (self.any(), self.any()) {
                    self.set(holder, value);
                }
            }
            12 => {
                let at = self.random(self.roots.len());
                self.roots[at] = self.any().unwrap_or(0);
            }
            13 if mode == Mode::Hybrid => self.free(),
            14 => self.reallocate(),
            15 if self.contents == Contents::Stray => {
                if let Some(holder) = self.any() {
                    let value = self.stray();
                    self.set(holder, value);
                }
            }
            _ => {}
        }
    }

    /// Some block, as a rule.
    fn any(&mut self) -> Option<usize> {
        let at = self.random(self.roots.len());
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
        if self.contents == Contents::Own || self.random(2) == 0 {
            // SAFETY: the block was just allocated with this many bytes.
            unsafe { (block as *mut u8).write_bytes(0, words * 8) };
        }
        self.blocks.insert(block, (0..words).map(|index| word(block + index * 8)).collect());
        if self.random(2) == 0 {
            let at = self.random(self.roots.len());
            self.roots[at] = block;
        } else if let Some(holder) = self.any() {
            self.set(holder, block);
        }
    }

    /// A word that the program holds for another reason, and that points to any place in the heap or after it.
    fn stray(&mut self) -> usize {
        let reservation = &self.fixture.heap.reservation;
        let (base, units) = (reservation.base(), reservation.units());
        base + self.random((units + 4) * UNIT)
    }

    fn set(&mut self, holder: usize, value: usize) {
        let Some(words) = self.blocks.get(&holder) else { return };
        let index = self.random(words.len());
        set_word(holder + index * 8, value);
        self.blocks.get_mut(&holder).expect("a block")[index] = value;
    }

    fn reallocate(&mut self) {
        let at = self.random(self.roots.len());
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
        if self.contents == Contents::Own || self.random(2) == 0 {
            // SAFETY: the block has this many bytes.
            unsafe { ((new + kept * 8) as *mut u8).write_bytes(0, (words.len() - kept) * 8) };
        }
        for (index, known) in words.iter_mut().enumerate().skip(kept) {
            *known = word(new + index * 8);
        }
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

/// Random programs under some settings, with `collect` now and then; returns how often that returned true.
pub fn run(
    seeds: Range<u64>,
    settings: &Settings,
    contents: Contents,
    steps: usize,
    collect: fn(&HeapFixture) -> bool,
) -> usize {
    seeds.map(|seed| run_one(seed, settings, contents, steps, collect)).sum()
}

fn run_one(
    seed: u64,
    settings: &Settings,
    contents: Contents,
    steps: usize,
    collect: fn(&HeapFixture) -> bool,
) -> usize {
    let fixture = HeapFixture::with(&Settings { poison: contents == Contents::Own, ..*settings }, 1);
    let mut mutator = Mutator {
        fixture: &fixture,
        contents,
        roots: vec![0; ROOTS[seed as usize % ROOTS.len()]].into_boxed_slice(),
        blocks: BTreeMap::new(),
        state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
    };
    fixture.add_roots(&mutator.roots[..]);
    let period = 2 + mutator.random(60);
    let mut found = 0;
    for _ in 0..steps {
        mutator.step(settings.mode);
        if mutator.random(period) == 0 {
            found += usize::from(collect(&fixture));
            mutator.verify();
            fixture.check();
        }
    }
    fixture.collect();
    mutator.verify();
    fixture.audit();
    found
}
