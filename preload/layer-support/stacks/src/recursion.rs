//! Recursion within one call stack: a tree that is built by two recursive calls has a call stack for each of its nodes,
//! a million of them, which differ in nothing but the order of two return addresses. Kept in full they cost more than
//! everything else, and read alike. So a return address is kept twice and left out where it occurs
//! again; a mark at the end states that.

use crate::{MOST_FRAMES, REPEATED};

/// How often a return address is kept: twice, so that a recursion still reads as one.
const KEPT: usize = 2;

/// Leaves out all but the innermost [`KEPT`] occurrences of each return address among `frames` words, and adds
/// [`REPEATED`] behind them when there were more. Returns how many words are left.
pub fn fold(words: &mut [usize], frames: usize) -> usize {
    let frames = frames.min(words.len()).min(MOST_FRAMES);
    let mut known = Known::default();
    let mut kept = 0;
    for at in 0..frames {
        let frame = words[at];
        if known.add(frame) && words[..kept].iter().filter(|&&other| other == frame).count() >= KEPT {
            continue;
        }
        words[kept] = frame;
        kept += 1;
    }
    if kept < frames {
        words[kept] = REPEATED;
        kept += 1;
    }
    kept
}

/// Which return addresses may have occurred: most stacks repeat none, and none of theirs is compared with all others.
#[derive(Default)]
struct Known {
    bits: [u64; 4],
}

impl Known {
    /// Adds an address; whether it may have been there.
    fn add(&mut self, frame: usize) -> bool {
        let mixed = (frame as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
        let (word, bit) = (&mut self.bits[mixed as usize >> 6], 1 << (mixed & 63));
        let was = *word & bit != 0;
        *word |= bit;
        was
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::HashSet;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    fn folded(frames: &[usize]) -> Vec<usize> {
        let mut words = frames.to_vec();
        words.push(0);
        let count = fold(&mut words, frames.len());
        words[..count].to_vec()
    }

    #[test]
    fn a_return_address_is_kept_twice() {
        let (a, b, main) = (0x1000, 0x2000, 0x3000);
        assert_eq!(folded(&[a, b, main]), [a, b, main]);
        assert_eq!(folded(&[a, a, main]), [a, a, main]);
        assert_eq!(folded(&[a, a, a, main]), [a, a, main, REPEATED]);
        assert_eq!(folded(&[a, b, a, b, b, a, main]), [a, b, a, b, main, REPEATED]);
        assert_eq!(folded(&[]), []);
        let different: Vec<usize> = (1..=MOST_FRAMES).map(|n| n * 4096).collect();
        assert_eq!(folded(&different), different);
        assert_eq!(folded(&[a; MOST_FRAMES]), [a, a, REPEATED]);
    }

    #[test]
    fn a_tree_of_two_recursive_calls_has_few_stacks() {
        let stacks: HashSet<Vec<usize>> = (0..1usize << 12)
            .flat_map(|way| {
                (0..=12).map(move |depth| {
                    let calls = (0..depth).map(|level| [0x1000, 0x2000][way >> level & 1]);
                    folded(&calls.chain(vec![0x3000]).collect::<Vec<_>>())
                })
            })
            .collect();
        assert!(stacks.len() < 40, "{} stacks", stacks.len());
    }
}
