//! What is kept of a live object.

use heaptoll_trace::graph::LastTouch;

use crate::words::Cell;

/// A live object.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Its number.
    pub number: u64,
    pub size: u64,
    /// The last touch so far, before `exit` began.
    pub last_touch: Option<LastTouch>,
    /// Root points when it was allocated, or touched first after one.
    pub point: u64,
    /// Words of it that hold an edge, and those that once did.
    pub edges: u64,
    /// Addresses of words that hold an edge to it, of some that did, and of some twice: see [`Block::pointed_from`].
    incoming: Vec<u64>,
    /// Length of `incoming` at which it is looked through.
    crowded: usize,
}

/// Words that point to an object from which on duplicates are removed.
const CROWDED: usize = 64;

impl Block {
    pub fn new(number: u64, size: u64, point: u64) -> Block {
        Block { number, size, point, crowded: CROWDED, ..Block::default() }
    }

    /// The program touches it; not counted of an object that was there when `exit` began, whose number is below
    /// `after_exit`.
    pub fn touched(&mut self, touch: LastTouch, after_exit: u64) {
        if self.number >= after_exit {
            self.last_touch = Some(touch);
        }
    }

    /// Notes a word that points to it. True when the list should be thinned by [`Block::thin`].
    pub fn pointed_from(&mut self, word: u64) -> bool {
        self.incoming.push(word);
        self.incoming.len() >= self.crowded
    }

    /// Keeps each word once, and only those that hold.
    pub fn thin(&mut self, mut holds: impl FnMut(u64) -> bool) {
        self.incoming.sort_unstable();
        self.incoming.dedup();
        self.incoming.retain(|&word| holds(word));
        self.crowded = CROWDED.max(2 * self.incoming.len());
    }

    /// The words noted.
    pub fn take_incoming(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.incoming)
    }
}

/// An object in a realloc that has not returned.
#[derive(Debug)]
pub(crate) struct Resizing {
    pub address: u64,
    pub block: Block,
    /// Its edges: offset of the word, and what it holds.
    pub edges: Vec<(u64, Cell)>,
}
