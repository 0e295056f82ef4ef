//! malloc, calloc, memalign, realloc and free of all sizes through several caches, with collections in between.

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// Blocks at once.
const SLOTS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Block {
    usable: usize,
    bytes: usize,
    seed: u8,
    slot: usize,
}

#[derive(Debug, Clone)]
enum Step {
    Allocate {
        cache: usize,
        bytes: usize,
        atomic: bool,
    },
    Zeroed {
        cache: usize,
        bytes: usize,
    },
    Aligned {
        cache: usize,
        shift: u32,
        bytes: usize,
    },
    Resize {
        cache: usize,
        at: usize,
        bytes: usize,
    },
    Free {
        cache: usize,
        at: usize,
    },
    /// Forgets a block.
    Leak {
        at: usize,
    },
    /// Closes a cache and opens one.
    Reopen {
        cache: usize,
    },
    Collect {
        lazily: bool,
    },
    Sweep,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0..200_usize,
        3 => 0..5000_usize,
        3 => 0..70_000_usize,
        1 => 0..1_500_000_usize,
        1 => prop::sample::select(std::vec![15, 16, 32, 128, 1023, 1024, 1025, LAST, SMALL_MAX, SMALL_MAX + 1, UNIT, 4 * UNIT]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (at, cache) = (any::<usize>(), 0..3_usize);
    prop_oneof![
        8 => (cache.clone(), size(), any::<bool>())
            .prop_map(|(cache, bytes, atomic)| Step::Allocate { cache, bytes, atomic }),
        2 => (cache.clone(), size()).prop_map(|(cache, bytes)| Step::Zeroed { cache, bytes }),
        1 => (cache.clone(), 5..23_u32, size())
            .prop_map(|(cache, shift, bytes)| Step::Aligned { cache, shift, bytes }),
        3 => (cache.clone(), at, size())
            .prop_map(|(cache, at, bytes)| Step::Resize { cache, at, bytes }),
        6 => (cache.clone(), at).prop_map(|(cache, at)| Step::Free { cache, at }),
        1 => at.prop_map(|at| Step::Leak { at }),
        1 => cache.prop_map(|cache| Step::Reopen { cache }),
        1 => any::<bool>().prop_map(|lazily| Step::Collect { lazily }),
        1 => Just(Step::Sweep),
    ]
}

/// The heap, its live blocks, and the words that keep them.
struct Model {
    fixture: HeapFixture,
    blocks: BTreeMap<usize, Block>,
    slots: Vec<usize>,
    seed: u8,
    /// The system may refuse memory.
    faults: bool,
}

/// The bytes of a block that are checked.
fn places(bytes: usize) -> impl Iterator<Item = usize> {
    (0..bytes).step_by((bytes / 64).max(1)).chain(bytes.checked_sub(1))
}

fn pattern(seed: u8, at: usize) -> u8 {
    (at as u8).wrapping_mul(31) ^ seed | 1
}

impl Model {
    fn new(settings: &Settings, faults: u64) -> Model {
        let fixture = HeapFixture::with(settings, 3);
        fixture.heap.units.lock().memory.heap.fail_every(faults);
        let slots = std::vec![0; SLOTS];
        fixture.add_roots(&slots);
        let faults = faults != 0 || settings.heap.is_some();
        Model { fixture, blocks: BTreeMap::new(), slots, seed: 0, faults }
    }

    /// Adds an allocated block to the model.
    fn got(&mut self, address: *mut u8, bytes: usize, alignment: usize) {
        if address.is_null() {
            assert!(self.faults, "there is memory for {bytes} bytes at {alignment}");
            return;
        }
        let address = address as usize;
        assert!(address.is_multiple_of(alignment.max(16)), "{address:#x} by {alignment:#x}");
        let usable = self.fixture.usable(address);
        assert!(usable >= bytes, "{usable} of {bytes}");
        let before = self.blocks.range(..address + usable.max(1)).next_back();
        assert!(before.is_none_or(|(at, block)| at + block.usable <= address), "blocks lie apart");
        self.seed = self.seed.wrapping_add(37);
        let slot = self.slots.iter().position(|&slot| slot == 0).expect("a slot");
        self.slots[slot] = address;
        let block = Block { usable, bytes, seed: self.seed, slot };
        for at in places(bytes) {
            // SAFETY: a byte of the block.
            unsafe { ((address + at) as *mut u8).write(pattern(block.seed, at)) };
        }
        self.blocks.insert(address, block);
    }

    fn verify(&self, address: usize, block: &Block) {
        assert_eq!(self.fixture.usable(address), block.usable);
        for at in places(block.bytes) {
            // SAFETY: a byte of a live block.
            let byte = unsafe { ((address + at) as *const u8).read() };
            assert_eq!(byte, pattern(block.seed, at), "byte {at} of {block:?}");
        }
    }

    fn nth(&self, at: usize) -> Option<usize> {
        let at = at.checked_rem(self.blocks.len())?;
        self.blocks.keys().nth(at).copied()
    }

    fn forget(&mut self, address: usize) -> Block {
        let block = self.blocks.remove(&address).expect("a live block");
        self.verify(address, &block);
        self.slots[block.slot] = 0;
        block
    }

    fn step(&mut self, step: &Step) {
        let full = self.blocks.len() >= SLOTS;
        match *step {
            Step::Allocate { cache, bytes, atomic } if !full => {
                let got = self.fixture.heap.allocate(self.fixture.cache(cache), bytes, atomic);
                self.got(got, bytes, 16);
            }
            Step::Zeroed { cache, bytes } if !full => {
                let got = self.fixture.heap.allocate_zeroed(self.fixture.cache(cache), bytes);
                assert!(got.is_null() || bytes_at(got as usize, bytes).iter().all(|&byte| byte == 0));
                self.got(got, bytes, 16);
            }
            Step::Aligned { cache, shift, bytes } if !full => {
                let got = self.fixture.heap.allocate_aligned(self.fixture.cache(cache), 1 << shift, bytes);
                self.got(got, bytes, 1 << shift);
            }
            Step::Resize { cache, at, bytes } => self.resize(cache, at, bytes),
            Step::Free { cache, at } => {
                if let Some(address) = self.nth(at) {
                    self.forget(address);
                    // SAFETY: a live block of the model, which `forget` has removed.
                    let freed =
                        unsafe { self.fixture.heap.free(self.fixture.cache(cache), address as *mut u8) };
                    assert_eq!(freed, Ok(()));
                }
            }
            Step::Leak { at } => {
                if let Some(address) = self.nth(at) {
                    self.forget(address);
                }
            }
            Step::Reopen { cache } => {
                // SAFETY: a cache of this heap, replaced below and not used again.
                unsafe { self.fixture.heap.close_cache(self.fixture.caches[cache]) };
                self.fixture.caches[cache] = self.fixture.heap.open_cache(7).expect("the one just closed");
            }
            Step::Collect { lazily } => {
                let reason = if lazily { Reason::Memory } else { Reason::Called };
                assert_eq!(self.fixture.heap.collect(reason).is_ok(), self.fixture.heap.collects());
            }
            Step::Sweep => self.fixture.heap.sweep_all(),
            Step::Allocate { .. } | Step::Zeroed { .. } | Step::Aligned { .. } => {}
        }
    }

    fn resize(&mut self, cache: usize, at: usize, bytes: usize) {
        let Some(address) = self.nth(at) else { return };
        let old = self.blocks[&address];
        let block = NonNull::new(address as *mut u8).expect("an address");
        // SAFETY: a live block of the model.
        let got = unsafe { self.fixture.heap.reallocate(self.fixture.cache(cache), block, bytes) };
        let got = got.expect("a live block is no misuse");
        if got.is_null() {
            assert!(self.faults);
            return self.verify(address, &old);
        }
        // The old contents were copied, as far as they fit.
        for at in places(old.bytes).filter(|&at| at < bytes) {
            // SAFETY: a byte of the block.
            assert_eq!(unsafe { got.add(at).read() }, pattern(old.seed, at));
        }
        self.blocks.remove(&address);
        self.slots[old.slot] = 0;
        self.got(got, bytes, 16);
    }

    fn run(mut self, steps: &[Step]) {
        for (number, step) in steps.iter().enumerate() {
            self.step(step);
            if number % 8 == 0 {
                self.fixture.check();
            }
            {
                let units = self.fixture.heap.units.lock();
                assert!(units.used_bytes(&self.fixture.heap.reservation) <= units.limit.saturating_mul(UNIT));
            }
            if number % 32 == 0 {
                self.fixture.audit();
            }
        }
        self.blocks.iter().for_each(|(&address, block)| self.verify(address, block));
        self.fixture.audit();
        while let Some(address) = self.nth(0) {
            self.forget(address);
            assert_eq!(self.fixture.free(address), Ok(()));
        }
        self.fixture.close();
        self.fixture.audit();
        if self.fixture.heap.collects() {
            // Only leaked blocks are left, and no root reaches them.
            self.fixture.collect();
            assert_eq!(self.fixture.census().live_bytes, 0);
            assert_eq!(self.fixture.heap.live_bytes(), 0);
            let free = self.fixture.heap.units.lock().free_bytes();
            assert_eq!(free, self.fixture.heap.reservation.units() * UNIT, "empty spans are released");
        }
        self.fixture.check();
    }
}

fn settings(mode: Mode, poison: bool) -> Settings {
    // The smallest headroom, so that collections start by themselves.
    Settings { mode, poison, min_headroom: 64 << 10, headroom: 30, ..Settings::new() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_keep_their_contents_without_collections(
        steps in prop::collection::vec(step(), 1..300),
        poison in any::<bool>(),
    ) {
        Model::new(&settings(Mode::Explicit, poison), 0).run(&steps);
    }

    #[test]
    fn blocks_keep_their_contents_in_hybrid_mode(
        steps in prop::collection::vec(step(), 1..300),
        poison in any::<bool>(),
    ) {
        Model::new(&settings(Mode::Hybrid, poison), 0).run(&steps);
    }

    #[test]
    fn blocks_keep_their_contents_in_collect_mode(
        steps in prop::collection::vec(step(), 1..300),
        poison in any::<bool>(),
    ) {
        Model::new(&settings(Mode::Collect, poison), 0).run(&steps);
    }

    #[test]
    fn refusals_of_the_system_leave_the_heap_sound(
        steps in prop::collection::vec(step(), 1..300),
        every in prop::sample::select(std::vec![2_u64, 3, 7]),
        mode in prop::sample::select(std::vec![Mode::Explicit, Mode::Hybrid, Mode::Collect]),
    ) {
        Model::new(&settings(mode, true), every).run(&steps);
    }

    #[test]
    fn a_limit_is_kept_and_leaves_the_heap_sound(
        steps in prop::collection::vec(step(), 1..300),
        units in 1..200_usize,
        mode in prop::sample::select(std::vec![Mode::Explicit, Mode::Hybrid, Mode::Collect]),
        eager in any::<bool>(),
        every in prop::option::of(1..1_000_000_usize),
    ) {
        let every = every.filter(|_| mode != Mode::Explicit);
        let heap = Some(units * UNIT);
        Model::new(&Settings { heap, every, eager, ..settings(mode, true) }, 0).run(&steps);
    }
}

/// The byte after the end once made this a larger request than the block's own, and it moved.
#[test]
fn a_block_that_is_resized_to_what_the_program_may_use_stays() {
    for mode in [Mode::Hybrid, Mode::Collect, Mode::Explicit] {
        let fixture = HeapFixture::new(mode, 1);
        for bytes in (1..200_000).step_by(997) {
            let block = fixture.allocate(bytes);
            let usable = fixture.heap.usable_by_program(block as *const u8);
            assert!(usable >= bytes, "{mode:?}: {usable} of {bytes}");
            let place = NonNull::new(block as *mut u8).expect("a block");
            // SAFETY: `block` was allocated above and is live.
            let resized = unsafe { fixture.heap.reallocate(fixture.cache(0), place, usable) };
            assert_eq!(resized, Ok(place.as_ptr()), "{mode:?}: {bytes}");
        }
        fixture.audit();
    }
}
