//! Mode `guard` against a model of who may have a pointer to what: random calls, addresses kept in roots and in blocks, at
//! any byte and one past the end.

use std::collections::BTreeMap;

use super::*;

/// Words of roots.
const ROOTS: usize = 64;
/// Blocks of the program at once.
const LIVE: usize = 600;

struct Random(u64);

impl Random {
    /// A number below `most`: xorshift.
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

/// What the program has done, as C allows it.
struct Program {
    fixture: HeapFixture,
    random: Random,
    roots: Vec<usize>,
    /// The blocks that the program has, by address, with their requested bytes.
    live: BTreeMap<usize, usize>,
    /// The most bytes that they had where they are: words may lead to an end that was cut.
    most: BTreeMap<usize, usize>,
    /// Those that it has freed and that were not handed out since, with their requested bytes.
    freed: BTreeMap<usize, usize>,
    /// Freed blocks found where others were handed out, and those to which a pointer existed at an allocation.
    reused: u64,
    held: u64,
}

impl Program {
    fn new(settings: &Settings, seed: u64) -> Program {
        let fixture = HeapFixture::with(settings, 3);
        let roots = std::vec![0; ROOTS];
        fixture.add_roots(&roots);
        let (live, most, freed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Program { fixture, random: Random(seed), roots, live, most, freed, reused: 0, held: 0 }
    }

    /// Whether a word that the program may use leads to a block, or one past its end.
    fn is_kept(&self, block: usize, bytes: usize) -> bool {
        let legal = block..=block + bytes;
        let words = |(&at, &size): (&usize, &usize)| (0..size / 8).map(move |index| word(at + index * 8));
        self.roots.iter().any(|word| legal.contains(word))
            || self.live.iter().flat_map(words).any(|word| legal.contains(&word))
    }

    /// A block was handed out: no freed block that it covers may have a pointer to it.
    fn allocated(&mut self, block: usize, bytes: usize) {
        let end = block + self.fixture.usable(block);
        let start = self.freed.range(..=block).next_back().map_or(block, |(&at, _)| at);
        let over: Vec<(usize, usize)> = self
            .freed
            .range(start..end)
            .map(|(&at, &size)| (at, size))
            .filter(|&(at, size)| at + size.max(1) > block)
            .collect();
        for (at, size) in over {
            assert!(!self.is_kept(at, size), "{at:#x} of {size} bytes is handed out again at {block:#x}");
            self.freed.remove(&at);
            self.reused += 1;
        }
        for index in 0..bytes / 8 {
            set_word(block + index * 8, 0);
        }
        assert!(self.live.insert(block, bytes).is_none(), "a block is one program's");
        self.most.insert(block, bytes);
    }

    /// A block that the program has.
    fn any(&mut self) -> Option<(usize, usize)> {
        let count = self.live.len();
        let at = self.random.below(count.max(1));
        self.live.iter().nth(at).map(|(&block, &bytes)| (block, bytes))
    }

    fn size(&mut self) -> usize {
        match self.random.below(80) {
            0 => 33_000 + self.random.below(30_000),
            1..=8 => self.random.below(6000),
            _ => 1 + self.random.below(100),
        }
    }

    fn step(&mut self) {
        let cache = self.random.below(3);
        let free_share = if self.live.len() < LIVE { 3 } else { 5 };
        match self.random.below(10) {
            share if share < free_share => {
                let Some((block, bytes)) = self.any() else { return };
                self.live.remove(&block);
                // SAFETY: the program has the block, and uses it no more.
                let freed = unsafe { self.fixture.heap.free(self.fixture.cache(cache), block as *mut u8) };
                assert_eq!(freed, Ok(()));
                // Of some: all that the program has is read for it.
                if self.random.below(32) == 0 {
                    self.held += u64::from(self.is_kept(block, bytes));
                }
                self.freed.insert(block, self.most[&block]);
            }
            5 => {
                // The address of a block, of a byte of it, or one past its end, in a root.
                let Some((block, _)) = self.any() else { return };
                let bytes = self.most[&block];
                let (at, place) = (self.random.below(ROOTS), self.random.below(bytes + 1));
                self.roots[at] = block + place;
            }
            6 => {
                let (Some((holder, bytes)), Some((block, size))) = (self.any(), self.any()) else { return };
                if bytes >= 8 {
                    let place = self.random.below(bytes / 8) * 8;
                    set_word(holder + place, block + self.random.below(size + 1));
                }
            }
            7 => {
                let at = self.random.below(ROOTS);
                self.roots[at] = 0;
            }
            8 => {
                let (Some((block, bytes)), mut wanted) = (self.any(), self.size()) else { return };
                if bytes > SMALL_MAX {
                    // Mostly where it is.
                    wanted = SMALL_MAX + 1 + self.random.below(60_000);
                }
                let at = NonNull::new(block as *mut u8).expect("an address");
                // SAFETY: the program has the block, and uses the one that is returned.
                let new = unsafe { self.fixture.heap.reallocate(self.fixture.cache(cache), at, wanted) };
                let new = new.expect("a block of the program") as usize;
                self.live.remove(&block);
                if new == block {
                    self.live.insert(block, wanted);
                    self.most.insert(block, self.most[&block].max(wanted));
                    // The word that was cut, too: what a former owner left there was not the program's.
                    (bytes / 8..wanted / 8).for_each(|at| set_word(new + at * 8, 0));
                } else {
                    self.freed.insert(block, self.most[&block]);
                    self.allocated(new, wanted);
                }
            }
            _ => {
                let bytes = self.size();
                let block = self.fixture.heap.allocate(self.fixture.cache(cache), bytes, false);
                assert!(!block.is_null());
                self.allocated(block as usize, bytes);
            }
        }
    }
}

fn run(settings: &Settings, steps: usize, seed: u64) {
    let mut program = Program::new(settings, seed);
    for step in 0..steps {
        program.step();
        if step % 10_000 == 0 {
            program.fixture.check();
        }
    }
    program.fixture.audit();
    assert!(program.reused > steps as u64 / 100, "{} freed blocks were used again", program.reused);
    assert!(program.held > steps as u64 / 1000, "to {} freed blocks pointers existed", program.held);
}

fn small() -> Settings {
    Settings { mode: Mode::Guard, headroom: 10, min_headroom: 64 << 10, ..Settings::new() }
}

#[test]
fn a_freed_block_is_never_handed_out_while_a_pointer_leads_to_it() {
    for seed in [1, 2, 3] {
        run(&small(), 60_000, 0x9e37_79b9 + seed);
    }
}

#[test]
fn nor_is_it_with_eager_sweeps_uncleared_blocks_or_inaccessible_ones() {
    let guard = GuardSettings::new();
    run(&Settings { eager: true, ..small() }, 30_000, 11);
    run(&Settings { guard: GuardSettings { clear: false, ..guard }, ..small() }, 30_000, 12);
    run(&Settings { guard: GuardSettings { fault: true, ..guard }, ..small() }, 30_000, 13);
    run(&Settings { every: Some(100_000), ..small() }, 30_000, 14);
}

#[test]
fn nor_is_it_with_several_markers() {
    let settings = Settings { markers: Some(3), ..small() };
    let mut program = Program::new(&settings, 15);
    program.fixture.heap.collector.lock().markers.set_limits(1, 4096);
    (0..30_000).for_each(|_| program.step());
    program.fixture.audit();
    assert!(program.reused > 300 && program.held > 3);
}
