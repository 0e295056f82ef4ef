//! Properties of both kinds of tags: a row of random blocks, some live, is walked in both directions.

extern crate std;

use std::vec::Vec;

use heaptoll_runtime::{ALIGNMENT, WORD};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

use crate::blocks::tags::{Block, BothEnds, InHeader, SMALLEST};

/// Zeroed memory for blocks of these sizes between two sentinels; its first header is at 8 mod 16.
struct Row {
    memory: Vec<u128>,
}

impl Row {
    fn for_sizes(sizes: &[(usize, bool)]) -> Row {
        let bytes: usize = sizes.iter().map(|(size, _)| size).sum();
        Row { memory: std::vec![0; bytes / 16 + 1] }
    }

    fn start(&mut self) -> usize {
        self.memory.as_mut_ptr() as usize
    }

    fn end(&self) -> usize {
        self.memory.as_ptr_range().end as usize
    }
}

/// Sizes of blocks, bytes, and whether each is live.
fn blocks() -> impl prop::strategy::Strategy<Value = Vec<(usize, bool)>> {
    use prop::strategy::Strategy;
    let size = (SMALLEST / ALIGNMENT..40).prop_map(|units| units * ALIGNMENT);
    prop::collection::vec((size, any::<bool>()), 1..20)
}

proptest! {
    #[test]
    fn state_at_both_ends_is_read_from_either_side(sizes in blocks()) {
        let mut row = Row::for_sizes(&sizes);
        let (start, end) = (row.start(), row.end());
        // SAFETY: sentinels and blocks fill the row's memory, and no tag is read before it is written.
        unsafe {
            Block::<BothEnds>::at(start).write_sentinel();
            let mut block = Block::<BothEnds>::at(start + WORD);
            for (size, live) in &sizes {
                block.write(*size, *live);
                block = block.after();
            }
            prop_assert_eq!(block.address(), end - WORD);
            block.write_sentinel();
            prop_assert!(block.is_live());
            let mut block = Block::<BothEnds>::at(start + WORD);
            let mut before = None;
            for (size, live) in &sizes {
                prop_assert!(block.is_sound(end));
                prop_assert_eq!((block.size(), block.is_live()), (*size, *live));
                prop_assert_eq!(block.free_before(), before);
                before = (!live).then_some(block);
                block = block.after();
            }
            prop_assert_eq!(block.free_before(), before);
        }
    }

    #[test]
    fn state_in_the_header_changes_and_neighbours_are_found(sizes in blocks()) {
        let mut row = Row::for_sizes(&sizes);
        let (start, end) = (row.start(), row.end());
        // SAFETY: sentinels and blocks fill the row's memory, and no tag is read before it is written.
        unsafe {
            let first = Block::<InHeader>::at(start);
            first.write_sentinel();
            let mut block = Block::<InHeader>::at(start + WORD);
            for (size, live) in &sizes {
                block.write(*size);
                if *live {
                    block.revive();
                }
                block = block.after();
            }
            block.write_sentinel();
            let mut before = first;
            let mut block = Block::<InHeader>::at(start + WORD);
            for (size, live) in &sizes {
                prop_assert!(block.is_sound(end));
                prop_assert_eq!((block.size(), block.is_live()), (*size, *live));
                prop_assert_eq!(block.before(), before);
                prop_assert_eq!(block.is_live_of(*size), *live);
                prop_assert_eq!(block.live_units() == *size / ALIGNMENT, *live);
                block.revive();
                block.mark(*live);
                prop_assert_eq!(block.unmark(), (true, *live));
                block.retire();
                prop_assert!(block.is_sound(end) && !block.is_live());
                before = block;
                block = block.after();
            }
            prop_assert_eq!((block.address(), block.before()), (end - WORD, before));
        }
    }
}
