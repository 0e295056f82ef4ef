//! Size classes of requests: multiples of eight bytes up to 64, then four classes to a doubling.
//!
//! They are no manager's own: fine enough to show every manager's classes as steps, few enough to be listed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a call's requested size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SizeClass {
    /// No block: `free(NULL)`.
    Null,
    /// A block that is not known, or a size that no number states (`calloc` of too much).
    Unknown,
    /// A size in bytes, both ends included.
    Size {
        /// The smallest.
        from_bytes: u64,
        /// The largest.
        up_to_bytes: u64,
    },
}

/// Classes up to here are eight bytes wide.
const FINE: u64 = 64;
/// Number of those classes, that of the size 0 included.
const FINE_CLASSES: usize = (FINE / 8) as usize + 1;
/// Number of classes of known sizes: those above go on to 2^64 in quarters of doublings.
const SIZES: usize = FINE_CLASSES + 4 * (64 - FINE.ilog2() as usize);

impl SizeClass {
    /// Number of classes.
    pub const COUNT: usize = SIZES + 2;

    /// The index of a request's class: 0 for null, 1 for unknown, then sizes upwards.
    pub(crate) fn index(request: Request) -> usize {
        match request {
            Request::Null => 0,
            Request::Unknown => 1,
            Request::Bytes(size) if size <= FINE => 2 + size.div_ceil(8) as usize,
            Request::Bytes(size) => {
                let power = (size - 1).ilog2();
                let quarter = ((size - 1) >> (power - 2)) & 3;
                2 + FINE_CLASSES + 4 * (power - FINE.ilog2()) as usize + quarter as usize
            }
        }
    }

    /// The class of an index.
    pub(crate) fn of(index: usize) -> SizeClass {
        match index {
            0 => SizeClass::Null,
            1 => SizeClass::Unknown,
            2 => SizeClass::Size { from_bytes: 0, up_to_bytes: 0 },
            _ => match index - 2 {
                fine if fine < FINE_CLASSES => {
                    let up_to = 8 * fine as u64;
                    SizeClass::Size { from_bytes: up_to - 7, up_to_bytes: up_to }
                }
                rest => {
                    let rest = rest - FINE_CLASSES;
                    let power = FINE.ilog2() + (rest / 4) as u32;
                    let (quarter, step) = ((rest % 4) as u64, 1u64 << (power - 2));
                    let from = (1u64 << power) + quarter * step;
                    SizeClass::Size { from_bytes: from + 1, up_to_bytes: from.saturating_add(step) }
                }
            },
        }
    }

    /// The class in a scale of doublings (0, 1 to 8, 9 to 16, 17 to 32...) that contains this one.
    pub fn doubling(self) -> SizeClass {
        match self {
            SizeClass::Size { up_to_bytes, .. } if up_to_bytes > 8 => {
                let below = 1u64 << (up_to_bytes - 1).ilog2();
                SizeClass::Size { from_bytes: below + 1, up_to_bytes: below.saturating_mul(2) }
            }
            class => class,
        }
    }

    /// The largest size in the class.
    pub fn up_to(self) -> Option<u64> {
        match self {
            SizeClass::Size { up_to_bytes, .. } => Some(up_to_bytes),
            SizeClass::Null | SizeClass::Unknown => None,
        }
    }
}

/// The requested size of a call, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Null,
    Unknown,
    Bytes(u64),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_follow_one_another_without_a_hole() {
        let mut next = 0;
        for index in 2..SizeClass::COUNT {
            let SizeClass::Size { from_bytes, up_to_bytes } = SizeClass::of(index) else { panic!("a size") };
            assert_eq!((from_bytes, up_to_bytes >= from_bytes), (next, true), "class {index}");
            next = up_to_bytes.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last one ends at 2^64 - 1");
        assert_eq!(SizeClass::of(0), SizeClass::Null);
        assert_eq!(SizeClass::of(1).up_to(), None);
    }

    #[test]
    fn the_first_ones_are_these() {
        let ends: Vec<_> = (2..18).filter_map(|index| SizeClass::of(index).up_to()).collect();
        assert_eq!(ends, [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224]);
    }

    proptest! {
        #[test]
        fn a_size_is_in_its_class(shift in 0u32..64, bits in any::<u64>()) {
            let size = bits >> shift;
            let class = SizeClass::of(SizeClass::index(Request::Bytes(size)));
            let SizeClass::Size { from_bytes, up_to_bytes } = class else { panic!("a size") };
            prop_assert!((from_bytes..=up_to_bytes).contains(&size), "{size} in {class:?}");
            let SizeClass::Size { from_bytes, up_to_bytes } = class.doubling() else { panic!("a size") };
            prop_assert!((from_bytes..=up_to_bytes).contains(&size), "{size} in {:?}", class.doubling());
            prop_assert!(up_to_bytes <= 8 || from_bytes > up_to_bytes / 2, "one doubling");
        }
    }
}
