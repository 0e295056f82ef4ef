//! What a program may do to a heap, and random sequences of it.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};

/// One call. Blocks are meant by their place among the live ones, taken modulo how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `malloc` of so many bytes.
    Allocate(usize),
    /// `memalign`: alignment and bytes.
    Aligned(usize, usize),
    /// `free` of a live block.
    Free(usize),
    /// `realloc` of a live block to so many bytes.
    Resize(usize, usize),
}

fn size() -> impl Strategy<Value = usize> + Clone {
    prop_oneof![
        8 => 0usize..130,
        4 => (0u32..13, 0usize..3).prop_map(|(bits, off)| (1usize << bits) + off - 1),
        2 => 130usize..6000,
        1 => 6000usize..300_000,
    ]
}

/// Sequences of up to `length` operations.
pub fn sequence(length: usize) -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        8 => size().prop_map(Operation::Allocate),
        1 => ((5u32..21), size()).prop_map(|(bits, size)| Operation::Aligned(1 << bits, size)),
        6 => (0usize..1000).prop_map(Operation::Free),
        2 => ((0usize..1000), size()).prop_map(|(block, size)| Operation::Resize(block, size)),
        1 => Just(Operation::Free(0)),
    ];
    vec(operation, 1..length)
}
