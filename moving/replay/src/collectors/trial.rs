//! Random programs for the tests of every collector. The check of each collection compares the heap with the trace's own
//! graph, so that is the model; what is wrong ends the test with the invariant that does not hold.

use std::collections::BTreeMap;
use std::ops::Range;

use heaptoll_moving_answers::{Collections, Replayed};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::collectors::pause::Sound;
use crate::program::{Operation, Program};
use crate::replay::replay;
use crate::settings::Settings;
use crate::world::World;

/// What random programs are like.
#[derive(Debug, Clone)]
pub struct Shape {
    pub objects: u32,
    pub words: Range<u32>,
    /// One object in so many is of thousands of words.
    pub large_one_in: u32,
    /// References lead to older objects only.
    pub acyclic: bool,
    /// Most objects that the program has not freed.
    pub live: usize,
    /// Roots of each root point.
    pub roots: usize,
}

pub const USUAL: Shape =
    Shape { objects: 10_000, words: 1..40, large_one_in: 200, acyclic: false, live: 400, roots: 50 };

/// A world whose collections are checked.
pub fn world(program: &Program, heap_bytes: u64) -> World {
    World::new(program.handles(), &Settings { heap_bytes, check: true, simulate: None })
}

/// Replays, and ends the test at what is wrong.
pub fn run(heap: &mut impl Sound, program: &Program) -> Replayed {
    let answer = replay(program, "trial", heap);
    end_if_wrong(&answer.collections);
    answer
}

/// Ends the test if a collection since the replay was wrong.
pub fn right(heap: &mut impl Sound) {
    end_if_wrong(&heap.world().record);
}

fn end_if_wrong(found: &Collections) {
    if let Some(wrong) = found.violation.as_ref().or(found.damage.as_ref()) {
        panic!("{wrong}");
    }
}

struct Object {
    handle: u32,
    scanned: u32,
    /// Allocated before those with a larger one.
    age: u32,
    released: bool,
}

struct Generator {
    numbers: ChaCha8Rng,
    shape: Shape,
    operations: Vec<Operation>,
    live: Vec<Object>,
    edges: BTreeMap<(u32, u32), u32>,
    free: Vec<u32>,
    handles: u32,
}

/// A random program.
pub fn random(seed: u64, shape: &Shape) -> Program {
    let mut generator = Generator {
        numbers: ChaCha8Rng::seed_from_u64(seed),
        shape: shape.clone(),
        operations: Vec::new(),
        live: Vec::new(),
        edges: BTreeMap::new(),
        free: Vec::new(),
        handles: 0,
    };
    for age in 0..shape.objects {
        generator.round(age);
    }
    Program::of(&generator.operations, generator.handles).unwrap()
}

impl Generator {
    fn round(&mut self, age: u32) {
        self.allocate(age);
        (0..4).for_each(|_| self.edge());
        match self.numbers.random_range(0..6) {
            0 => self.clear(),
            1..=3 => self.release(),
            4 => self.end(),
            _ => self.touch(),
        }
        while self.live.len() > self.shape.live {
            self.release();
            self.end();
        }
        if age % 64 == 63 {
            self.point();
        }
    }

    fn pick(&mut self) -> usize {
        self.numbers.random_range(0..self.live.len())
    }

    fn allocate(&mut self, age: u32) {
        let handle = self.free.pop().unwrap_or(self.handles);
        self.handles = self.handles.max(handle + 1);
        let large = self.numbers.random_ratio(1, self.shape.large_one_in);
        let words = self.numbers.random_range(if large { 1000..5000 } else { self.shape.words.clone() });
        let scanned = self.numbers.random_range(0..=words);
        self.operations.push(Operation::Allocate { handle, words, scanned });
        self.live.push(Object { handle, scanned, age, released: false });
    }

    /// A reference from an object that is still touched to any.
    fn edge(&mut self) {
        let (from, to) = (self.pick(), self.pick());
        let (from, to) = (&self.live[from], &self.live[to]);
        if from.released || from.scanned == 0 || self.shape.acyclic && from.age <= to.age {
            return;
        }
        let (from, to, word) = (from.handle, to.handle, self.numbers.random_range(0..from.scanned));
        self.edges.insert((from, word), to);
        self.operations.push(Operation::Edge { from, word, to });
    }

    fn clear(&mut self) {
        let key = (self.numbers.random_range(0..self.handles), 0);
        let Some((&(from, word), _)) = self.edges.range(key..).next() else { return };
        self.remove(from, word);
    }

    fn remove(&mut self, from: u32, word: u32) {
        self.edges.remove(&(from, word));
        self.operations.push(Operation::Clear { from, word });
    }

    fn touch(&mut self) {
        let at = self.pick();
        if !self.live[at].released {
            self.operations.push(Operation::Root(self.live[at].handle));
        }
    }

    fn release(&mut self) {
        let at = self.pick();
        if !std::mem::replace(&mut self.live[at].released, true) {
            self.operations.push(Operation::Release(self.live[at].handle));
        }
    }

    /// The program frees an object, after the words that lead to it were cleared.
    fn end(&mut self) {
        let at = self.pick();
        let Object { handle, released, .. } = self.live.swap_remove(at);
        if !released {
            self.operations.push(Operation::Release(handle));
        }
        let incoming: Vec<(u32, u32)> =
            self.edges.iter().filter(|&(_, &to)| to == handle).map(|(&key, _)| key).collect();
        incoming.into_iter().for_each(|(from, word)| self.remove(from, word));
        self.edges.retain(|&(from, _), _| from != handle);
        self.operations.push(Operation::End(handle));
        self.free.push(handle);
    }

    fn point(&mut self) {
        self.operations.push(Operation::Point);
        for _ in 0..self.shape.roots {
            let at = self.pick();
            self.operations.push(Operation::Root(self.live[at].handle));
        }
    }
}
