//! Which words point to which objects, to find those that still do when an object is freed: by the trace's definition
//! they hold no pointer from then on, and no event states it.

use rustc_hash::FxHashMap;

/// A word of an object.
type Word = (u32, u32);

/// Words that point to an object from which on the list is thinned.
const CROWDED: usize = 64;

/// The edges that hold.
#[derive(Debug, Default)]
pub(super) struct Edges {
    target: FxHashMap<Word, u32>,
    /// By handle.
    incoming: Vec<Incoming>,
}

/// Words that point to an object, some that did, and some twice.
#[derive(Debug, Default)]
struct Incoming {
    words: Vec<Word>,
    crowded: usize,
}

impl Edges {
    pub(super) fn set(&mut self, from: u32, word: u32, to: u32) {
        if self.target.insert((from, word), to) == Some(to) {
            return;
        }
        let at = to as usize;
        if at >= self.incoming.len() {
            self.incoming.resize_with(at + 1, Incoming::default);
        }
        let incoming = &mut self.incoming[at];
        incoming.words.push((from, word));
        if incoming.words.len() >= incoming.crowded.max(CROWDED) {
            incoming.words.sort_unstable();
            incoming.words.dedup();
            incoming.words.retain(|word| self.target.get(word) == Some(&to));
            incoming.crowded = 2 * incoming.words.len();
        }
    }

    /// Whether there was one.
    pub(super) fn clear(&mut self, from: u32, word: u32) -> bool {
        self.target.remove(&(from, word)).is_some()
    }

    /// Ends an object with the edges from its first `scanned` words, and those to it: gives the words of other objects
    /// that pointed to it.
    pub(super) fn end(&mut self, handle: u32, scanned: u32) -> Vec<Word> {
        for word in 0..scanned {
            self.target.remove(&(handle, word));
        }
        let Some(incoming) = self.incoming.get_mut(handle as usize) else { return Vec::new() };
        let mut words = std::mem::take(incoming).words;
        words.retain(|word| {
            let held = self.target.get(word) == Some(&handle);
            if held {
                self.target.remove(word);
            }
            held
        });
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_ends_with_the_words_that_point_to_it() {
        let mut edges = Edges::default();
        edges.set(0, 0, 2);
        edges.set(0, 1, 2);
        edges.set(0, 1, 3);
        edges.set(1, 5, 2);
        edges.set(2, 0, 2);
        edges.set(1, 6, 2);
        assert!(edges.clear(1, 6));
        assert_eq!(edges.end(2, 1), [(0, 0), (1, 5)]);
        assert!(!edges.clear(0, 0));
        assert_eq!(edges.end(3, 0), [(0, 1)]);
    }

    #[test]
    fn many_words_that_pointed_once_are_forgotten() {
        let mut edges = Edges::default();
        for round in 0..10_000 {
            edges.set(0, round % 3, 1);
            edges.set(0, round % 3, 2);
        }
        assert!(edges.incoming[1].words.len() <= CROWDED);
        assert_eq!(edges.end(1, 0), []);
        assert_eq!(edges.end(2, 0).len(), 3);
    }

    #[test]
    fn a_handle_that_is_used_again_has_none_of_the_edges_before() {
        let mut edges = Edges::default();
        edges.set(0, 0, 1);
        assert_eq!(edges.end(0, 1), []);
        assert_eq!(edges.end(1, 0), []);
    }
}
