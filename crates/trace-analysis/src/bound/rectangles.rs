//! Packing with everything known: blocks are rectangles, as wide as their lifetime and as high as their size, and are
//! placed one after the other in an order other than that of their allocation. For traces of some ten thousand blocks:
//! each is compared with all that are placed.
//!
//! Placing the largest first is how planners of memory for neural networks do it (Pisarchyk & Lee 2020, "Efficient
//! Memory Management for Deep Neural Net Inference", greedy by size).

/// A block from allocation to free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rectangle {
    /// Event of its allocation.
    pub(super) birth: u64,
    /// Event of its free, at which it is no longer live.
    pub(super) death: u64,
    /// Bytes, rounded up.
    pub(super) length: u64,
    /// Its address is a multiple of this.
    pub(super) align: u64,
}

/// The order in which blocks are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The largest first.
    Size,
    /// Those that live longest first.
    Lifetime,
    /// The largest product of both first.
    Area,
}

/// Places all; returns the start of each.
pub(super) fn pack(rectangles: &[Rectangle], order: Order) -> Vec<u64> {
    let mut turns: Vec<usize> = (0..rectangles.len()).collect();
    let key = |at: usize| {
        let Rectangle { birth, death, length, .. } = rectangles[at];
        let lifetime = death - birth;
        let area = u128::from(length) * u128::from(lifetime);
        let first = match order {
            Order::Size => (u128::from(length), lifetime),
            Order::Lifetime => (u128::from(lifetime), length),
            Order::Area => (area, length),
        };
        (std::cmp::Reverse(first), birth)
    };
    turns.sort_by_key(|&at| key(at));
    let mut starts = vec![0; rectangles.len()];
    // Start and number of those that are placed, the lowest first.
    let mut placed: Vec<(u64, usize)> = Vec::with_capacity(rectangles.len());
    for at in turns {
        let new = rectangles[at];
        let mut start = 0_u64;
        for &(other_start, other) in &placed {
            let old = rectangles[other];
            if old.death <= new.birth || new.death <= old.birth {
                continue;
            }
            if start.saturating_add(new.length) <= other_start {
                break;
            }
            start = start.max(other_start + old.length).next_multiple_of(new.align);
        }
        starts[at] = start;
        let place = placed.partition_point(|&(other, _)| other <= start);
        placed.insert(place, (start, at));
    }
    starts
}

/// Bytes of the smallest heap that holds all.
pub(super) fn heap_bytes(rectangles: &[Rectangle], starts: &[u64]) -> u64 {
    rectangles.iter().zip(starts).map(|(rectangle, start)| start + rectangle.length).max().unwrap_or(0)
}
